package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// AuditEvent is a request that the API server has answered. Verb is Kubernetes' (get, list, watch, create, update, patch,
// delete, deletecollection) for resources and HTTP's in lower case for other paths, whose Resource is empty.
type AuditEvent struct {
	User        string
	Verb        string
	Path        string // with the query, as requested
	Group       string // API group of the resource; "" is the core group
	Resource    string // plural, in lower case
	Subresource string // "" for the object itself
	Namespace   string // "" for cluster-scoped objects and requests over all namespaces
	Name        string // "" for lists and for creates by generateName
	Code        int    // HTTP status of the response
	Time        time.Time
}

// record is an event as the API server writes it (audit.k8s.io/v1, level Metadata).
type record struct {
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// AuditEvents returns all requests answered so far, of all users, in the order of their answers; the latest may be missing
// for a moment after the client has its answer. A watch is among them once it has ended. It is an error to ask a cluster
// that was started without Options.Audit.
func (c *Cluster) AuditEvents() ([]AuditEvent, error) {
	log, err := c.OpenAuditLog("")
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	return log.Next()
}

// AuditLog reads the audit log piece by piece, for programs that look at it often while it grows long. It is for one
// goroutine at a time.
type AuditLog struct {
	file *os.File
	user string
	rest []byte // begins a line whose end is not written yet
	read int    // lines so far
}

// OpenAuditLog returns an AuditLog that is at the first request of user, or of all users if that is "". The error is that of
// [Cluster.AuditEvents]. The caller closes it.
func (c *Cluster) OpenAuditLog(user string) (*AuditLog, error) {
	if !c.options.Audit {
		return nil, errors.New("reading the audit log: the cluster was started without Options.Audit")
	}
	file, err := os.Open(c.auditLog())
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return &AuditLog{file: file, user: user}, nil
}

// Next returns the requests that were answered since the last call.
func (l *AuditLog) Next() ([]AuditEvent, error) {
	added, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	content := slices.Concat(l.rest, added)
	end := bytes.LastIndexByte(content, '\n') + 1
	l.rest = bytes.Clone(content[end:])
	var events []AuditEvent
	for line := range bytes.Lines(content[:end]) {
		l.read++
		if !bytes.Contains(line, []byte(l.user)) {
			continue // decoding is what costs
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("reading the audit log: line %d: %w", l.read, err)
		}
		if l.user != "" && l.user != r.User.Username {
			continue
		}
		events = append(events, AuditEvent{
			User: r.User.Username, Verb: r.Verb, Path: r.RequestURI,
			Group: r.ObjectRef.APIGroup, Resource: r.ObjectRef.Resource, Subresource: r.ObjectRef.Subresource,
			Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name,
			Code: r.ResponseStatus.Code, Time: r.RequestReceivedTimestamp,
		})
	}
	return events, nil
}

// Close closes the log.
func (l *AuditLog) Close() error { return l.file.Close() }

func (c *Cluster) auditLog() string { return filepath.Join(c.dir, "audit.log") }
