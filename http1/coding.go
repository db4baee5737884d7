package http1

import "bytes"

// Accepts reports whether the client takes content of that coding, spelled in
// lower case, by its Accept-Encoding fields (RFC 9110 section 12.5.3): the
// member of that name or its x- alias decides, else `*`, and a weight of zero
// means no. Without such a field only the plain form is sure to be understood.
func (r *Request) Accepts(coding string) bool {
	if r.first[AcceptEncoding] == 0 {
		return false
	}
	named, star := weightNone, weightNone
	for i := range r.fields {
		if r.fields[i].known != AcceptEncoding {
			continue
		}
		for member, rest := cutMember(r.fields[i].value(r.head)); ; member, rest = cutMember(rest) {
			name, params, _ := bytes.Cut(member, []byte(";"))
			name = trim(name)
			switch {
			case isCoding(name, coding):
				named = weightOf(params)
			case string(name) == "*":
				star = weightOf(params)
			}
			if rest == nil {
				break
			}
		}
	}
	if named == weightNone {
		named = star
	}
	return named == weightSome
}

// isCoding compares names of codings; x-gzip is gzip (RFC 9110 section 8.4.1.3).
func isCoding(name []byte, coding string) bool {
	return equalFold(name, coding) ||
		len(name) > 2 && equalFold(name[:2], "x-") && equalFold(name[2:], coding)
}

// weight is what a member's q says; more than whether it is zero is not asked.
type weight uint8

const (
	weightNone weight = iota // no such member
	weightZero               // q=0, or nothing that can be read
	weightSome
)

// weightOf reads what follows the first semicolon of a member: nothing, or
// q= and 0 to 1 with up to three decimals.
func weightOf(params []byte) weight {
	params = trim(params)
	if len(params) == 0 {
		return weightSome
	}
	if len(params) < 3 || lower(params[0]) != 'q' || params[1] != '=' {
		return weightZero
	}
	q := params[2:]
	if len(q) > len("0.000") || q[0] != '0' && q[0] != '1' || len(q) > 1 && q[1] != '.' {
		return weightZero
	}
	w := weightZero
	for i, c := range q {
		if i == 1 {
			continue
		}
		if c < '0' || c > '9' {
			return weightZero
		}
		if c != '0' {
			w = weightSome
		}
	}
	return w
}
