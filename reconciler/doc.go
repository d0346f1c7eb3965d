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
//   - Nothing that another owner made is taken over.
//   - A user's string is data: it cannot add a key, an object or a template action to the manifest.
//   - Objects land only in the custom resource's own namespace.
//   - A panic in a schema or a template is one custom resource's condition, not the process's end.
//   - The status has one writer, which sends one patch, and only if something changed.
//
// # Conditions
//
//	Ready        the summary: valid, applied, available and settled
//	Valid        the spec keeps its schema                            InvalidSpec, SchemaFailed
//	Applied      the objects are as rendered                          RenderFailed, Conflict, Forbidden, Invalid, …
//	Available    the workload serves                                  Progressing, ImagePullBackOff, CrashLoopBackOff, …
//	Reconciling  only while a rollout or a retry is under way
//	Stalled      only while someone must act: nothing is retried
package reconciler
