// Answers what Kubernetes' own evaluator makes of device selectors: one JSON line in, one out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	Expression string             `json:"expression"`
	Driver     string             `json:"driver"`
	Device     resourceapi.Device `json:"device"`
}

type answer struct {
	Value   *bool   `json:"value,omitempty"`
	Compile string  `json:"compile,omitempty"`
	Error   string  `json:"error,omitempty"`
	Cost    *uint64 `json:"cost,omitempty"`
}

func ask(asked question) (given answer) {
	// Some expressions make the compiler itself panic; the API server cannot have stored these.
	defer func() {
		if reason := recover(); reason != nil {
			given = answer{Compile: fmt.Sprint("panic: ", reason)}
		}
	}()
	compiled := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}).
		CompileCELExpression(asked.Expression, dracel.Options{DisableCostEstimation: true})
	if compiled.Error != nil {
		return answer{Compile: compiled.Error.Error()}
	}
	value, details, err := compiled.DeviceMatches(context.Background(), dracel.Device{
		Driver:                   asked.Driver,
		AllowMultipleAllocations: asked.Device.AllowMultipleAllocations,
		Attributes:               asked.Device.Attributes,
		Capacity:                 asked.Device.Capacity,
	})
	var cost *uint64
	if details != nil {
		cost = details.ActualCost()
	}
	if err != nil {
		return answer{Error: err.Error(), Cost: cost}
	}
	return answer{Value: &value, Cost: cost}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	answers := json.NewEncoder(os.Stdout)
	answers.SetEscapeHTML(false)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := answers.Encode(ask(asked)); err != nil {
			panic(err)
		}
	}
}
