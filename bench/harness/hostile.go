package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tailcast/bench"
	"tailcast/bench/hostile"
)

const (
	// oldRecords are published before the first stream: some MB, more than the
	// server under attack has memory for, so that who asks for all of them makes
	// it ask its broker.
	oldRecords = 10_000
	// calmWithin bounds the wait for the end of what an attack has begun: the
	// server's own times for silent clients, twice over.
	calmWithin = 40 * time.Second
	// askEvery is how often the issuer of tokens may be asked for its keys.
	askEvery = 5 * time.Second
)

// What an attack may do at most to honest streams and to the server.
const (
	slowerMax   = 1.5 // p99 under attack, as a multiple of that right before
	slowerLeast = 1.0 // milliseconds; a difference below is not the attack's
	growthMax   = 64 << 20
)

// Attack is what an attack came to, and what it did to others.
type Attack struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	PerSec float64 `json:"per_s"`            // of the unit
	Failed int64   `json:"failed,omitempty"` // times that an attacker got no connection
	Before Seen    `json:"before"`
	During Seen    `json:"during"`
	Broke  string  `json:"broke,omitempty"` // what it did that none may do
}

// Seen is what honest streams and the server show over some time.
type Seen struct {
	LatencyMS   bench.Latency `json:"latency_ms"`
	RSS         int64         `json:"rss_bytes"` // the most
	ServerShare float64       `json:"server_cpu_share"`
	// OpenMS is how long it took to open another stream, in the middle.
	OpenMS float64 `json:"open_ms"`
}

// AttackOrder is what those are told who attack, in a process of their own.
type AttackOrder struct {
	Attack    string         `json:"attack"` // its name
	At        hostile.Target `json:"at"`
	Attackers int            `json:"attackers"`
	For       Duration       `json:"for"`
}

// CarryOut attacks. It returns when the time is over or ctx is done.
func (o *AttackOrder) CarryOut(ctx context.Context) hostile.Made {
	for _, a := range hostile.Attacks() {
		if a.Name == o.Attack {
			return a.Run(ctx, o.At, o.Attackers, time.Duration(o.For))
		}
	}
	return hostile.Made{}
}

// attacks are those that the specification names, by parts of their names.
func (s *Spec) attacks() (all []hostile.Attack, err error) {
	if len(s.Attack) == 0 {
		return hostile.Attacks(), nil
	}
	for _, part := range s.Attack {
		n := len(all)
		for _, a := range hostile.Attacks() {
			if strings.Contains(a.Name, part) {
				all = append(all, a)
			}
		}
		if len(all) == n {
			return nil, fmt.Errorf("--attack: no attack has %q in its name", part)
		}
	}
	return all, nil
}

// hostile has others attack the server, one way after the other, while its
// streams go on.
func (r *run) hostile() error {
	attacks, err := r.setup.attacks()
	if err != nil {
		return err
	}
	p, err := r.setup.Command(OnLoad, r.setup.Tailcast, "bench", "attack")
	if err != nil {
		return err
	}
	attackers := NewOrders(p)
	if err := r.old(); err != nil {
		return err
	}
	cfg := r.config()
	cfg.Arrivals = true
	cfg.Reopen, cfg.RetryMax = true, time.Second // so that an attack finds the same streams as the one before
	if err := r.open(cfg); err != nil {
		return err
	}
	for i := range attacks {
		out, err := r.attacked(attackers, &attacks[i])
		r.out.Attacks = append(r.out.Attacks, out)
		if err != nil {
			return fmt.Errorf("%s: %w", out.Name, err)
		}
		r.say(Progress{Doing: fmt.Sprintf("%s: %.0f %s a second, p99 %.0f ms", out.Name, out.PerSec, out.Unit, out.During.LatencyMS.P99)})
	}
	if most := 2 + int64(time.Since(r.started)/askEvery); r.setup.site.Asked() > most {
		r.out.fault("the issuer of tokens was asked for its keys %d times, where %d are enough", r.setup.site.Asked(), most)
	}
	r.sumUpAttacks()
	return r.look(&r.out.End)
}

// old publishes what there is before the first stream, and waits until the
// server has it.
func (r *run) old() error {
	if _, err := r.server.Publisher.Publish(r.ctx, bench.Order{Count: oldRecords}); err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	ctx, cancel := context.WithTimeout(r.ctx, readyWithin)
	defer cancel()
	return r.metric(ctx, "tailcast_records_total", func(v float64) bool { return v >= oldRecords })
}

// metric waits for a value of the server's metrics.
func (r *run) metric(ctx context.Context, name string, right func(v float64) bool) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		m, err := scrape(ctx, r.server.Metrics)
		if err != nil || right(m[name]) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still %v: %w", name, m[name], ctx.Err())
		case <-tick.C:
		}
	}
}

// attacked looks at honest streams before an attack and under it.
func (r *run) attacked(by *Orders, a *hostile.Attack) (out Attack, err error) {
	out = Attack{Name: a.Name, Unit: a.Unit}
	warm, length := time.Duration(r.setup.Warm), time.Duration(r.setup.For)
	before := r.client.Result().Counts
	published := r.publish(bench.Order{Rate: r.setup.Rate, Count: count(r.setup.Rate, warm+2*length+tailTime)})
	if out.Before, err = r.seen("before: "+a.Name, length); err != nil {
		return out, err
	}
	var made hostile.Made
	order := AttackOrder{Attack: a.Name, At: r.server.Attacked, Attackers: r.setup.Attackers, For: Duration(warm + length + tailTime/2)}
	over := r.aside(func() error { return carryOut(r.ctx, by, order, &made) })
	r.doing("attack: "+a.Name, warm)
	if err := r.client.Run(r.ctx, warm); err != nil {
		return out, err
	}
	if out.During, err = r.seen("attack: "+a.Name, length); err != nil {
		return out, err
	}
	if err := over(0); err != nil {
		return out, err
	}
	out.PerSec, out.Failed = float64(made.Count)/made.Seconds, made.Failed
	if err := published(); err != nil {
		return out, err
	}
	if err := r.drain(); err != nil {
		return out, err
	}
	after := r.client.Result().Counts
	ended := after.Ended() - before.Ended()
	if ended > 0 {
		r.out.fault("%s: %d honest streams were ended", a.Name, ended)
	}
	switch faults := after.Faults() - before.Faults(); {
	case ended > 0:
		out.Broke = fmt.Sprintf("%d streams ended", ended)
	case faults > 0:
		out.Broke = fmt.Sprintf("%d faults in streams", faults)
	}
	return out, r.calm(a.Name)
}

// seen looks at the streams and the server for the time d.
func (r *run) seen(what string, d time.Duration) (Seen, error) {
	r.doing(what, d)
	most := r.watch.rss()
	r.watch.begin()
	opened := openings(r.server.Attacked.Plain, hostile.EventsPath)
	r.client.Measure()
	err := r.client.Run(r.ctx, d)
	r.client.Measured()
	open := opened()
	load, slices := r.watch.end()
	for _, s := range append(slices, Slice{RSS: r.watch.rss()}) {
		most = max(most, s.RSS)
	}
	return Seen{
		LatencyMS: r.client.Window().LatencyMS, RSS: most, ServerShare: load.ServerShare,
		OpenMS: float64(open) / float64(time.Millisecond),
	}, err
}

// judge says whether streams were slower under an attack than they may be, or the
// server larger.
func (a *Attack) judge() {
	before, during := a.Before.LatencyMS.P99, a.During.LatencyMS.P99
	switch {
	case a.Broke != "":
	case a.During.LatencyMS.Samples == 0:
		a.Broke = "nothing came"
	case during > before*slowerMax && during-before > slowerLeast:
		a.Broke = "p99"
	case a.During.RSS-a.Before.RSS > growthMax:
		a.Broke = "memory"
	}
}

// calm waits until the server has no other connections than honest ones.
func (r *run) calm(behind string) error {
	r.doing("calm", 0)
	ctx, cancel := context.WithTimeout(r.ctx, calmWithin)
	defer cancel()
	honest := float64(r.setup.Streams)
	err := r.aside(func() error {
		return r.metric(ctx, "tailcast_connections", func(v float64) bool { return v <= honest })
	})(calmWithin)
	if err != nil && ctx.Err() != nil && r.ctx.Err() == nil {
		r.out.fault("%s: what it began has not ended %v later", behind, calmWithin)
		return nil
	}
	return err
}

// sumUpAttacks judges the attacks and makes figures of what was seen of all.
func (r *run) sumUpAttacks() {
	held, slower, growth := 0, 0.0, int64(0)
	for i := range r.out.Attacks {
		a := &r.out.Attacks[i]
		if a.judge(); a.Broke == "" {
			held++
		}
		if before := a.Before.LatencyMS.P99; before > 0 {
			slower = max(slower, a.During.LatencyMS.P99/before)
		}
		growth = max(growth, a.During.RSS-a.Before.RSS)
	}
	f := &r.out.Figures
	f.set("attacks", float64(len(r.out.Attacks)))
	f.set("attacks_held", float64(held))
	f.set("attack_p99_ratio", slower)
	f.set("attack_growth_mb", float64(growth)/1e6)
}
