package loop

// roster is a list of connections that is walked in steps while connections
// come and go: a walk meets every one that was there at its beginning, unless
// it has left, exactly once, and newcomers once at most. Loop only.
type roster struct {
	conns []*conn
	met   int // conns[:met] have been met by the walk, and stayed
}

func (r *roster) len() int { return len(r.conns) }

// add puts c behind the others, where a walk under way meets it.
func (r *roster) add(c *conn) {
	c.list, c.pos = r, int32(len(r.conns))
	r.conns = append(r.conns, c)
}

// remove takes c out, met or not.
func (r *roster) remove(c *conn) {
	hole := int(c.pos)
	if hole < r.met { // filled by the last one met, which leaves a hole at the border
		r.met--
		r.move(r.met, hole)
		hole = r.met
	}
	last := len(r.conns) - 1
	r.move(last, hole)
	r.conns[last] = nil
	r.conns = r.conns[:last]
	c.list = nil
}

func (r *roster) move(from, to int) {
	if from == to { // a hole, whose connection has another place by now
		return
	}
	r.conns[to] = r.conns[from]
	r.conns[to].pos = int32(to)
}

// rewind begins a walk.
func (r *roster) rewind() { r.met = 0 }

// next returns the connection whose turn it is, nil at the end of the walk.
// The caller removes it or calls pass.
func (r *roster) next() *conn {
	if r.met == len(r.conns) {
		return nil
	}
	return r.conns[r.met]
}

// pass notes that the connection next returned has been met and stays.
func (r *roster) pass() { r.met++ }

// ahead returns the next n connections of the walk, or as many as there are.
// Valid until the roster changes.
func (r *roster) ahead(n int) []*conn { return r.conns[r.met:min(r.met+n, len(r.conns))] }
