package kind

import (
	"fmt"
	"sync/atomic"
	"time"

	"cuelang.org/go/cue"
)

// maxEvaluation is how long an evaluation may take; a usual one takes a millisecond. Tests shorten it.
var maxEvaluation = 5 * time.Second

// maxRunaways is how many evaluations of one kind may run on after they were given up: each keeps a CPU busy, and memory,
// until it ends.
const maxRunaways = 3

// Program is what CUE computes for a kind. Only the function that Evaluate calls may use its values.
type Program struct {
	root cue.Value
	// Object is the schema of the whole custom resource.
	Object cue.Value
	// Values computes the chart's values from #object, a valid custom resource with its defaults filled in.
	Values cue.Value
	// Plan is Values with Object as #object: one evaluation both checks a custom resource and computes its values.
	Plan cue.Value
	// Report computes the kind's part of the status from #metadata and #observed.
	Report cue.Value
}

// RunawayError says that an evaluation was given up.
type RunawayError struct {
	// What was evaluated, such as "the schema of Teapot".
	What string
	// After is how long it was waited for.
	After time.Duration
}

// Error says what to do, too.
func (e *RunawayError) Error() string {
	return fmt.Sprintf("evaluating %s took longer than %s: bound what its CUE multiplies, nested comprehensions above all", e.What, e.After)
}

// Evaluate calls f with the program of k while no other evaluation runs. what names it, such as "the schema". A panic becomes
// an error. CUE cannot be cancelled: an evaluation that takes too long is given up with a *RunawayError and runs on beside the
// others, with a program that nobody else uses any more. f must not share what it returns, nor return values of CUE.
func Evaluate[T any](k *Kind, what string, f func(*Program) (T, error)) (T, error) {
	var none T
	what += " of " + k.name()
	if k.runaways.Load() >= maxRunaways {
		return none, fmt.Errorf("evaluating %s: %d evaluations of this kind were given up and still run", what, maxRunaways)
	}
	var program *Program
	turn, done := takeTurn(func() (result outcome[T]) {
		defer func() { result.panic = recover() }()
		if program = k.program; program == nil {
			if program, result.err = k.compile(); result.err != nil {
				return result
			}
		}
		result.value, result.err = f(program)
		return result
	})
	limit := time.NewTimer(maxEvaluation)
	defer limit.Stop()
	select {
	case result := <-done:
		k.program = program
		if result.panic != nil { // it left the program half evaluated
			k.program = nil
			result.err = fmt.Errorf("evaluating %s: %v", what, result.panic)
		}
		turn.end()
		return result.value, result.err
	case <-limit.C:
		k.program = nil
		k.runaways.Add(1)
		go func() {
			<-done
			k.runaways.Add(-1)
		}()
		turn.giveUp()
		return none, &RunawayError{What: what, After: maxEvaluation}
	}
}

type outcome[T any] struct {
	value T
	err   error
	panic any
}

// turn is held while CUE evaluates anything. The evaluator completes shared values when they are first looked at, and does so
// without a lock (cuelang.org/go v0.17.1, found by the race detector); see docs/adr/0003. A mutex would not do: nobody could
// take it from an evaluation that never ends.
type turn struct {
	held    chan struct{} // full while somebody holds the turn
	givenUp chan struct{} // closed once a fresh turn stands in its place
	work    chan func()   // done one after another, on a stack that need not grow each time
}

var current atomic.Pointer[turn]

func init() { current.Store(newTurn()) }

func newTurn() *turn {
	t := &turn{held: make(chan struct{}, 1), givenUp: make(chan struct{}), work: make(chan func())}
	go func() {
		for {
			select {
			case f := <-t.work:
				f()
			case <-t.givenUp:
				return
			}
		}
	}()
	return t
}

// takeTurn waits until nobody else evaluates, and then lets f begin; what becomes of it is sent.
func takeTurn[T any](f func() outcome[T]) (*turn, <-chan outcome[T]) {
	done := make(chan outcome[T], 1)
	for {
		t := current.Load()
		select {
		case t.held <- struct{}{}:
			t.work <- func() { done <- f() }
			return t, done
		case <-t.givenUp:
		}
	}
}

func (t *turn) end() { <-t.held }

// giveUp leaves the turn to the evaluation that runs away: it stays held, and all who wait go on with a fresh one.
func (t *turn) giveUp() {
	current.Store(newTurn())
	close(t.givenUp)
}
