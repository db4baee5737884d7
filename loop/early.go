package loop

// early is what was read of a connection before those were there who read it now.
type early []byte

// read gives out what is left, 0 once there is nothing.
func (e *early) read(b []byte) (n int) {
	n = copy(b, *e)
	if *e = (*e)[n:]; len(*e) == 0 {
		*e = nil
	}
	return n
}
