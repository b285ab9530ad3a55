// Answers which devices kube-scheduler's own allocator gives, one JSON document a line: a case in, an answer out.
// The allocator is k8s.io/dynamic-resource-allocation/structured, with the features that are on by default.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// limit is how long one case may take; one that takes longer has no answer.
const limit = 200 * time.Millisecond

var features = structured.Features{
	AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
	DeviceBindingAndStatus: true, ConsumableCapacity: true,
}

// problem is one case; Allocated is what claims have got before.
type problem struct {
	Slices    []*resourceapi.ResourceSlice   `json:"slices"`
	Classes   []*resourceapi.DeviceClass     `json:"classes"`
	Node      *v1.Node                       `json:"node"`
	Claims    []*resourceapi.ResourceClaim   `json:"claims"`
	Allocated []resourceapi.AllocationResult `json:"allocated"`
}

// answer has the allocations, or none of them; Error ends an attempt, Refusal is about the node.
type answer struct {
	Allocations []resourceapi.AllocationResult `json:"allocations,omitempty"`
	Error       string                         `json:"error,omitempty"`
	Refusal     string                         `json:"refusal,omitempty"`
	TimedOut    bool                           `json:"timedOut,omitempty"`
}

type classes []*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return c, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range c {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclass"), name)
}

// stateOf gathers what is taken as the scheduler does from claims.
func stateOf(allocated []resourceapi.AllocationResult) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, allocation := range allocated {
		for _, result := range allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

func solve(line []byte, cache *cel.Cache) (result answer) {
	defer func() {
		if failure := recover(); failure != nil {
			result = answer{Error: fmt.Sprintf("panic: %v", failure)}
		}
	}()
	var given problem
	if err := json.Unmarshal(line, &given); err != nil {
		return answer{Error: "cannot read the case: " + err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	allocator, err := structured.NewAllocator(
		ctx, features, stateOf(given.Allocated), classes(given.Classes), given.Slices, cache)
	if err != nil {
		return answer{Error: err.Error()}
	}
	allocations, err := allocator.Allocate(ctx, given.Node, given.Claims)
	switch {
	case ctx.Err() != nil:
		return answer{TimedOut: true}
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return answer{Refusal: err.Error()}
	case err != nil:
		return answer{Error: err.Error()}
	case len(allocations) < len(given.Claims):
		return answer{Refusal: "cannot allocate all claims"}
	}
	return answer{Allocations: allocations}
}

func main() {
	cache := cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for lines.Scan() {
		if err := encoder.Encode(solve(lines.Bytes(), cache)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Flush()
	}
}
