package kind

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What follows is the Go form of the contract's data in schemas/kind/kind.cue, which says what each field means.

// Names are those of the kind's CustomResourceDefinition.
type Names struct {
	Group      string   `json:"group"`
	Version    string   `json:"version"`
	Kind       string   `json:"kind"`
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
}

// Scopes of a kind.
const (
	ScopeNamespaced = "Namespaced"
	ScopeCluster    = "Cluster"
)

// Column is a column of kubectl get.
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	JSONPath string `json:"jsonPath"`
	Priority int32  `json:"priority"`
}

// Scale are the paths of the scale subresource; Selector may be empty.
type Scale struct {
	Spec     string `json:"spec"`
	Status   string `json:"status"`
	Selector string `json:"selector"`
}

// Sample is what a kind's package says of a sample beside its spec.
type Sample struct {
	// Name is its custom resource's.
	Name string
	// Namespace is its custom resource's, by the attribute @sample(namespace=…); empty for any.
	Namespace string
	// Description is the comment above it: when to use it.
	Description string
}

// What a kind can observe beside its objects.
const (
	ObservePods = "Pod"
	ObserveJobs = "Job"
)

// Policies say what the operator may do beyond creating and updating the objects that a custom resource owns.
type Policies struct {
	Fields    []FieldPolicy `json:"fields"`
	Adopt     string        `json:"adopt"`
	Recreate  []string      `json:"recreate"`
	Deletion  string        `json:"deletion"`
	Placement string        `json:"placement"`
	Optional  []string      `json:"optional"`
}

// Values of Policies and of FieldPolicy.Conflict.
const (
	AdoptNever   = "Never"
	AdoptUnowned = "Unowned"

	DeletionDelete = "Delete"
	DeletionOrphan = "Orphan"

	PlacementNamespace = "Namespace"
	PlacementAnywhere  = "Anywhere"

	ConflictYield  = "Yield"
	ConflictReport = "Report"
	ConflictForce  = "Force"
)

// FieldPolicy says whose a field of an object kind is when another field manager has set it.
type FieldPolicy struct {
	Kind     string   `json:"kind"`
	Path     string   `json:"path"`
	Conflict string   `json:"conflict"`
	Managers []string `json:"managers"`
}

// ConflictOf returns what happens when manager has set the field at path (spec.replicas) of an object of kind gk to another
// value than ours: ConflictYield, ConflictReport or ConflictForce.
func (p *Policies) ConflictOf(gk schema.GroupKind, path, manager string) string {
	for _, f := range p.Fields {
		if f.Kind == gk.String() && f.Path == path && (len(f.Managers) == 0 || slices.Contains(f.Managers, manager)) {
			return f.Conflict
		}
	}
	return ConflictForce
}

// MayRecreate tells whether objects of kind gk may be deleted and created anew when a change of them is refused.
func (p *Policies) MayRecreate(gk schema.GroupKind) bool {
	return slices.Contains(p.Recreate, gk.String())
}

// IsOptional tells whether objects of kind gk are left out in a cluster that does not know them.
func (p *Policies) IsOptional(gk schema.GroupKind) bool {
	return slices.Contains(p.Optional, gk.String())
}
