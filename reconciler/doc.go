// Package reconciler serves custom resources whose kinds are data: a CUE schema and a Helm chart. It knows no kind by name.
//
// # One custom resource's way
//
//	watch ──▶ validate ──▶ render ──▶ apply ──▶ report
//	            spec       values     objects    live objects, pods
//	            └▶ values  └▶ objects └▶ cluster └▶ status
//
// Each verb is a package of its own that takes values and returns values; none imports another. Only Reconcile knows all of
// them, and it reads as the list above.
//
// # Invariants
//
//   - Reconciling the same world twice writes nothing: no object, no status, no event. Neither does a restart.
//   - An invalid spec touches nothing: what ran before goes on running.
//   - Nothing that another owner made is taken over, unless an annotation or the kind's policy allows it.
//   - Nothing is deleted that the inventory does not name, and that label and UID do not prove to be the custom resource's.
//   - Every object is in the inventory before it is in the cluster, and until it is gone.
//   - A user's string is data: it cannot add a key, an object or a template action to the manifest.
//   - Objects land only in the custom resource's own namespace, unless the kind's policy says otherwise.
//   - A panic or an endless evaluation in a schema or a template is one custom resource's condition, not the process's end.
//   - A kind that breaks ends nothing: the last good one goes on serving.
//   - The status has one writer, and is written only if something changed: once a reconciliation, and once more before objects
//     that are not in the inventory yet.
//
// # Conditions
//
//	Ready        the summary: valid, applied, available and settled
//	Valid        the spec keeps its schema                            InvalidSpec, SchemaFailed
//	Applied      the objects are as rendered                          RenderFailed, Conflict, Immutable, ApplyLoop, …
//	Available    the workload serves                                  Progressing, ImagePullBackOff, CrashLoopBackOff, …
//	Reconciling  only while a rollout or a retry is under way         Applying, DeletionBlocked, …
//	Stalled      only while someone must act: nothing is retried
//	Paused       only while an annotation says so
//
// # Files
//
//	reconciler.go  Reconcile: validate, render, apply, prune; deletion
//	plan.go        validate and render
//	report.go      observe and report; reports.go remembers what was reported
//	status.go      the conditions; writer.go writes them
//	requests.go    what brings a custom resource back
//	watches.go     which kinds are watched, for as long as somebody needs them; caches.go keeps what they hold small
//	library.go     kinds that come and go
//	events.go, metrics.go, register.go
package reconciler
