package config

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// readFlags reads the arguments of the command. A flag of a list may come more
// than once and adds; of any other flag the last one wins.
func (l *loader) readFlags(args []string) ([]assignment, error) {
	if err := l.refuseShort(args); err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet(l.command, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	var all []*assignment
	for i := range l.settings {
		s := &l.settings[i]
		if l.byName[s.name] == nil {
			continue
		}
		a := &assignment{setting: s}
		f := flags.VarPF((*flagValue)(a), s.name, "", s.help)
		if s.value.arg == "" {
			f.NoOptDefVal = "true"
		}
		all = append(all, a)
	}
	if err := flags.Parse(args); err != nil {
		return nil, l.flagError(err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %s", quote(flags.Arg(0)))
	}
	var set []assignment
	for _, a := range all {
		if a.from != "" {
			set = append(set, *a)
		}
	}
	return set, nil
}

// flagValue takes down what a flag was given; apply reads it.
type flagValue assignment

// Set implements pflag.Value.
func (v *flagValue) Set(text string) error {
	v.from = "--" + v.setting.name
	v.items = append(v.items, split(v.setting.value.list, text, v.from)...)
	return nil
}

func (v *flagValue) String() string { return "" }

// Type implements pflag.Value.
func (v *flagValue) Type() string { return v.setting.value.arg }

// refuseShort stops at the first flag with one dash. pflag would read
// -heartbeat as -h, -e and so on, and there is no flag of one letter but -h.
func (l *loader) refuseShort(args []string) error {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, long := strings.CutPrefix(arg, "--")
		switch {
		case arg == "--":
			return nil
		case arg == "-h":
			return ErrHelp
		case long:
			if s := l.byName[name]; s != nil && s.value.arg != "" {
				i++ // its value, which may begin with a dash
			}
		case len(arg) > 1 && arg[0] == '-':
			name, _, _ = strings.Cut(arg[1:], "=")
			return l.unknownFlag("-", name)
		}
	}
	return nil
}

// flagError says an error of pflag in our words.
func (l *loader) flagError(err error) error {
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ErrHelp
	case errors.As(err, &unknown):
		return l.unknownFlag("--", unknown.GetSpecifiedName())
	case errors.As(err, &empty):
		return fmt.Errorf("--%s: needs a value", empty.GetSpecifiedName())
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not a flag", quote(syntax.GetSpecifiedFlag()))
	}
	return err
}

func (l *loader) unknownFlag(dashes, name string) error {
	spell := func(name string) string { return "--" + name }
	return fmt.Errorf("unknown flag %s%s", quote(dashes+name), l.hint(name, spell))
}
