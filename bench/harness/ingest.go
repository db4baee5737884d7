package harness

// ingest takes the figures of a server that has read a backlog by the time it
// was started.
func (r *run) ingest() error {
	n := float64(r.setup.Records)
	took, cpu := r.started.Sub(r.server.Began).Seconds(), r.watch.cpu().Seconds()
	r.out.Figures.set("records_per_s", n/took)
	r.out.Figures.set("records_per_cpu_s", n/cpu)
	r.out.Figures.set("cpu_us_per_record", cpu*1e6/n)
	if err := r.look(&r.out.End); err != nil {
		return err
	}
	if m, err := scrape(r.ctx, r.server.Metrics); err != nil {
		return err
	} else if got := m["tailcast_records_total"]; got < n {
		r.out.fault("%.0f of %.0f records were read by the time the server was ready", got, n)
	}
	if r.out.End.Mallocs > 0 {
		r.out.Figures.set("mallocs_per_record", r.out.End.Mallocs/n)
	}
	r.out.Figures.set("rss_mb", float64(r.out.End.RSS)/1e6)
	return nil
}
