package observe

import (
	"strings"
	"time"
	_ "time/tzdata" // Without it the status would depend on the zones that the host or the image happens to have.

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func isCronJob(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == cronJobs
}

func cronJobOf(u *unstructured.Unstructured) CronJob {
	active, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "active")
	running, _ := active.([]any)
	c := CronJob{
		Name:               u.GetName(),
		Active:             int64(len(running)),
		LastScheduleTime:   text(u, "status", "lastScheduleTime"),
		LastSuccessfulTime: text(u, "status", "lastSuccessfulTime"),
	}
	c.Suspended, _, _ = unstructured.NestedBool(u.Object, "spec", "suspend")
	if !c.Suspended {
		after := c.LastScheduleTime
		if after == "" {
			after = text(u, "metadata", "creationTimestamp")
		}
		c.NextScheduleTime = next(text(u, "spec", "schedule"), text(u, "spec", "timeZone"), after)
	}
	return c
}

// next returns the first time of a schedule after a time, as the CronJob controller computes it, empty if there is none or
// one of the three cannot be read. Without a zone the controller takes its own, which is UTC wherever it runs in a container.
func next(schedule, zone, after string) string {
	start, err := time.Parse(time.RFC3339, after)
	if err != nil || strings.Contains(schedule, "TZ=") { // The API server refuses zones there; cron v3.0.1 panics at some.
		return ""
	}
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return ""
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return ""
	}
	// A schedule without a zone of its own goes by that of the time that it is given.
	found := parsed.Next(start.In(location))
	if found.IsZero() { // such as February 30
		return ""
	}
	return found.UTC().Format(time.RFC3339)
}
