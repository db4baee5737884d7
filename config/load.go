package config

import (
	"errors"
	"fmt"
	"strings"

	"tailcast/route"
)

// The commands that have a configuration.
const (
	Serve       = "serve"
	Demonstrate = "demo"
	Check       = "check" // reads what serve would, and serves nothing
)

// ErrHelp is returned by Load when the arguments ask for help (Help).
var ErrHelp = errors.New("help asked for")

// Load returns the configuration of a command from its arguments (without its
// name), the environment (NAME=VALUE each, os.Environ) and the file these name.
// Flag > environment > file > default; a list replaces the list below it. Every
// source must be right as a whole, also where a higher one overrides it.
func Load(command string, args, env []string) (*Config, error) {
	if command != Serve && command != Demonstrate && command != Check {
		return nil, fmt.Errorf("%s is not a command with a configuration (use %s, %s or %s)", quote(command), Serve, Demonstrate, Check)
	}
	l := newLoader(command)
	flags, err := l.readFlags(args)
	if err != nil {
		return nil, err
	}
	vars, err := l.readEnv(env)
	if err != nil {
		return nil, err
	}
	file, routes, err := l.readFile(lastOf(configFile, vars, flags))
	if err != nil {
		return nil, err
	}
	for _, source := range [...][]assignment{l.defaults(), file, vars, flags} {
		for _, a := range source {
			if err := l.apply(a); err != nil {
				return nil, err
			}
		}
	}
	if err := l.joinRoutes(routes); err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	return l.config, nil
}

// loader fills one Config.
type loader struct {
	command  string
	config   *Config
	settings []setting
	byName   map[string]*setting // those of the command
	guard    placedGuard         // of routes that the file doesn't have
	from     map[string]string   // by setting: the place that set it last; none for a default
}

// assignment is what one source says about one setting.
type assignment struct {
	setting *setting
	from    string // the place, as errors name it: --max-lag, TAILCAST_MAX_LAG, tailcast.yaml:3:5: key "max-lag"
	items   []item // one, or any number for a list
}

// item is one value and its place.
type item struct{ text, from string }

// routesMax bounds the routes of a node: each tails its topic from start to stop
// and may hold --log-bytes.
const routesMax = 5000

// topicsMax bounds the topics of a route, as an event id does.
const topicsMax = 64

// placedRoute is a route and where it was set.
type placedRoute struct {
	Route
	from    string // the place of its path
	ownCORS bool
	guard   placedGuard
}

func newLoader(command string) *loader {
	c := &Config{}
	l := &loader{
		command:  command,
		config:   c,
		settings: settings(c),
		byName:   make(map[string]*setting),
		from:     make(map[string]string),
	}
	for i := range l.settings {
		if s := &l.settings[i]; s.reach.has(command) {
			l.byName[s.name] = s
		}
	}
	return l
}

// names returns the settings of the command, in the table's order.
func (l *loader) names() []string {
	var names []string
	for i := range l.settings {
		if name := l.settings[i].name; l.byName[name] != nil {
			names = append(names, name)
		}
	}
	return names
}

// hint says what an unknown setting may have been: another command's, or a
// mistyped one, written by spell. more are names beside the settings.
func (l *loader) hint(typed string, spell func(name string) string, more ...string) string {
	for i := range l.settings {
		if s := &l.settings[i]; s.name == typed && !s.reach.has(l.command) {
			if s.reach == demoOnly {
				return " (only tailcast demo has it)"
			}
			return " (tailcast demo brings its own broker)"
		}
	}
	if best := nearest(typed, append(l.names(), more...)); best != "" {
		return " (did you mean " + quote(spell(best)) + "?)"
	}
	return ""
}

func (l *loader) defaults() []assignment {
	var all []assignment
	for _, name := range l.names() {
		s := l.byName[name]
		if s.def != "" {
			all = append(all, assignment{setting: s, items: split(s.value.list, s.def, "the default of --"+s.name)})
		}
	}
	return all
}

// split returns the items of a text: for a list what stands between commas.
func split(list bool, text, from string) []item {
	if !list {
		return []item{{text, from}}
	}
	if text == "" {
		return nil
	}
	var all []item
	for part := range strings.SplitSeq(text, ",") {
		all = append(all, item{strings.TrimSpace(part), from})
	}
	return all
}

// apply puts an assignment into the Config.
func (l *loader) apply(a assignment) error {
	a.setting.value.clear()
	for _, it := range a.items {
		if err := a.setting.value.add(it.text); err != nil {
			return fmt.Errorf("%s: %w", it.from, err)
		}
	}
	if a.from != "" {
		l.from[a.setting.name] = a.from
	}
	return nil
}

// lastOf returns the item that wins for a setting of one value, from sources in
// rising order; the zero item when none has it.
func lastOf(name string, sources ...[]assignment) item {
	var last item
	for _, source := range sources {
		for _, a := range source {
			if a.setting.name == name {
				last = a.items[len(a.items)-1]
			}
		}
	}
	return last
}

// joinRoutes puts the file's routes before those of --route, lets demo have one
// anyway, and gives them what all share: --max-event, and --cors-origins to those
// without origins of their own.
func (l *loader) joinRoutes(file []placedRoute) error {
	c := l.config
	all := file
	for _, r := range c.Routes {
		all = append(all, placedRoute{Route: r, from: l.from["route"], guard: l.guard})
	}
	if len(all) == 0 && l.command == Demonstrate {
		r := newRoute()
		r.Path, r.Topics = "/events", []string{c.Demo.Topic}
		all = append(all, placedRoute{Route: r, guard: l.guard})
	}
	if len(all) > routesMax {
		return fmt.Errorf("%s: more than %d routes", all[routesMax].from, routesMax)
	}
	c.Routes = nil
	seen := make(map[string]string, len(all))
	table, _ := route.NewTable(nil)
	for _, r := range all {
		at := r.Host + r.Path
		if before, ok := seen[at]; ok {
			return fmt.Errorf("%s: path %s is routed already by %s", r.from, quote(at), before)
		}
		seen[at] = r.from
		if err := table.Add(route.Route{Host: r.Host, Path: r.Path}); err != nil {
			return fmt.Errorf("%s: %w", r.from, err)
		}
		if err := r.guard.setChecked(&r); err != nil {
			return err
		}
		if !r.ownCORS {
			r.CORS = c.CORS
		}
		r.Format.MaxEvent = int(c.MaxEvent)
		c.Routes = append(c.Routes, r.Route)
	}
	return nil
}
