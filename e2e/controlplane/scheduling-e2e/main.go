// Runs the scheduling specs of Kubernetes' own end-to-end suite, as they are in k8s.io/kubernetes/test/e2e/scheduling.
// It takes the flags of e2e.test and one of its own; no other SIG's specs are in it.
package main

import (
	"encoding/json"
	"flag"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"

	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	manifests "k8s.io/kubernetes/test/e2e/testing-manifests"

	_ "k8s.io/kubernetes/test/e2e/feature"
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/metrics/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
	_ "k8s.io/kubernetes/test/e2e/scheduling"
)

// progress is one line of the file --progress names. The first has the number of specs that will run; then
// each spec has a line without a state when it begins and one with its state when it has ended.
type progress struct {
	Specs   int      `json:"specs,omitempty"`
	Name    string   `json:"name,omitempty"`
	Labels  []string `json:"labels,omitempty"`
	State   string   `json:"state,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Failure string   `json:"failure,omitempty"`
}

var progressFile = flag.String("progress", "", "file for one JSON document a line: what begins, and what ended how")

// outcome is what ginkgo.RunSpecs reports a failure to outside of `go test`.
type outcome struct{ failed bool }

func (o *outcome) Fail() { o.failed = true }

func main() {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(manifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	if *progressFile != "" {
		reportProgress(*progressFile)
	}
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	result := &outcome{}
	if !ginkgo.RunSpecs(result, "Kubernetes e2e suite, scheduling", suite, reporter) || result.failed {
		os.Exit(1)
	}
}

func reportProgress(path string) {
	file, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	lines := json.NewEncoder(file)
	write := func(line progress) {
		if err := lines.Encode(line); err != nil {
			panic(err)
		}
	}
	ginkgo.ReportBeforeSuite(func(report ginkgo.Report) {
		write(progress{Specs: report.PreRunStats.SpecsThatWillRun})
	})
	ginkgo.ReportBeforeEach(func(report ginkgo.SpecReport) {
		if !report.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
			write(progress{Name: report.FullText(), Labels: report.Labels()})
		}
	})
	ginkgo.ReportAfterEach(func(report ginkgo.SpecReport) {
		if report.NumAttempts == 0 {
			return // a filter left it out
		}
		line := progress{
			Name:    report.FullText(),
			Labels:  report.Labels(),
			State:   report.State.String(),
			Seconds: report.RunTime.Seconds(),
		}
		if !report.Failure.IsZero() {
			line.Failure = report.Failure.Message + "\n" + report.Failure.Location.String()
		}
		write(line)
	})
}
