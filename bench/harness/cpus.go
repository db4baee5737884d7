package harness

import (
	"fmt"
	"strconv"
	"strings"
)

// cpusMax is what a Linux affinity mask of the usual size holds.
const cpusMax = 1024

// listCPUs reads a list of processors such as 0,2-5; "" is none.
func listCPUs(list string) (all []int, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= cpusMax {
			return nil, fmt.Errorf("processors %q: want a list such as 0,2-5", list)
		}
		for c := first; c <= last; c++ {
			all = append(all, c)
		}
	}
	return all, nil
}
