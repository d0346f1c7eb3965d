package main

import (
	"strings"
	"time"

	"github.com/example/memcached-operator/test/cluster"
)

// calls are requests to the API server by class. A watch counts when it ends, as the audit log has it; a read that was
// streamed by one is not seen before.
type calls struct {
	ObjectWrites int `json:"objectWrites"`
	StatusWrites int `json:"statusWrites"`
	Reads        int `json:"reads"` // and what else changes nothing: discovery, access reviews, dry runs
	Events       int `json:"events"`
	Leases       int `json:"leases"`
	Watches      int `json:"watches"`
	Conflicts    int `json:"conflicts"` // of the above, those that were answered with 409
	// By is the same by verb and resource, such as "patch deployments.apps".
	By map[string]int `json:"by,omitempty"`
}

// writes are those of objects and status.
func (c calls) writes() int { return c.ObjectWrites + c.StatusWrites }

// count returns the calls of requests received from start on and before end.
func count(events []cluster.AuditEvent, start, end time.Time) calls {
	c := calls{By: map[string]int{}}
	for _, e := range events {
		if e.Time.Before(start) || !e.Time.Before(end) {
			continue
		}
		*c.class(e)++
		if e.Code == 409 {
			c.Conflicts++
		}
		c.By[title(e)]++
	}
	return c
}

// class returns the counter that a request belongs to.
func (c *calls) class(e cluster.AuditEvent) *int {
	switch {
	case e.Resource == "leases":
		return &c.Leases
	case e.Verb == "watch":
		return &c.Watches
	case isRead(e):
		return &c.Reads
	case e.Resource == "events":
		return &c.Events
	case e.Subresource == "status":
		return &c.StatusWrites
	default:
		return &c.ObjectWrites
	}
}

func isRead(e cluster.AuditEvent) bool {
	return e.Verb == "get" || e.Verb == "list" || e.Resource == "" || strings.HasSuffix(e.Group, "authorization.k8s.io") ||
		strings.HasSuffix(e.Group, "authentication.k8s.io") || strings.Contains(e.Path, "dryRun=")
}

func title(e cluster.AuditEvent) string {
	if e.Resource == "" {
		path, _, _ := strings.Cut(e.Path, "?")
		return e.Verb + " " + path
	}
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	if e.Subresource != "" {
		resource += "/" + e.Subresource
	}
	return e.Verb + " " + resource
}
