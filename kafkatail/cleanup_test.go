package kafkatail

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"tailcast/hub"
)

// TestCleanup: what brokers say of a topic's cleaning, or Kafka's defaults
// where they may not say.
func TestCleanup(t *testing.T) {
	c := newCluster(t, kfake.SeedTopics(1, "a", "plain"))
	for topic, configs := range map[string]map[string]string{
		"compact": {"cleanup.policy": "compact", "delete.retention.ms": "60000"},
		"both":    {"cleanup.policy": "compact,delete", "delete.retention.ms": "9223372036854775807"},
		"retain":  {"cleanup.policy": "delete"},
	} {
		if err := c.CreateTopic(topic, 1, configs); err != nil {
			t.Fatal(err)
		}
	}
	h := newHistorian(t, c)
	for topic, want := range map[string]hub.Cleanup{
		"compact": {Compacted: true, DeleteRetention: time.Minute},
		"both":    {Compacted: true, DeleteRetention: time.Duration(maxMillis) * time.Millisecond},
		"retain":  {DeleteRetention: 24 * time.Hour},
		"none":    {Compacted: true, DeleteRetention: 24 * time.Hour},
	} {
		if topic == "none" {
			c.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
				resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
				r := kmsg.NewDescribeConfigsResponseResource()
				r.ResourceName, r.ErrorCode = "none", kerr.TopicAuthorizationFailed.Code
				resp.Resources = append(resp.Resources, r)
				return resp, nil, true
			})
		}
		if got, err := h.Cleanup(t.Context(), topic); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", topic, got, err, want)
		}
	}
}
