package hub

// Table finds which of a loop's filtered streams a record is for. A stream is
// filed under the values of one term an item, so a record costs a look-up for
// each value that it has, however many streams there are; the other terms are
// compared for the streams found. Loop only; the zero Table is empty.
type Table struct {
	files map[string]*hook // by field number and value: the first of a list
	n     int
}

// Watch is one stream in a Table.
type Watch struct {
	Filter *Filter

	// Conn is the loop's own.
	Conn any

	hooks []hook
	one   [1]hook // hooks of most, beside what is read with them
	found int64   // behind the place of the last frame found for it
}

// hook is a watch in the list of one value.
type hook struct {
	watch      *Watch
	item       filterItem
	value      string
	prev, next *hook
}

// Len returns the number of streams in t.
func (t *Table) Len() int { return t.n }

// Add files w, which must not be in a table.
func (t *Table) Add(w *Watch) {
	if t.files == nil {
		t.files = map[string]*hook{}
	}
	t.n++
	n := 0
	terms := make([][][]byte, len(w.Filter.items))
	for i, item := range w.Filter.items {
		terms[i] = t.rarest(item)
		n += len(terms[i])
	}
	if w.hooks = w.one[:0]; n > len(w.one) {
		w.hooks = make([]hook, 0, n) // never grows: lists point into it
	}
	for i, item := range w.Filter.items {
		for _, value := range terms[i] {
			w.hooks = append(w.hooks, hook{watch: w, item: item, value: string(value)})
			t.link(&w.hooks[len(w.hooks)-1])
		}
	}
}

// rarest returns the term of an item to file it under: one whose values fewest
// streams have, which is the user's rather than the tenant's.
func (t *Table) rarest(item filterItem) (best [][]byte) {
	const enough = 64 // as many as make a list long; more need not be counted
	least := -1
	for _, term := range item {
		n := len(term) // an entry each, too
		for _, value := range term {
			for h := t.files[string(value)]; h != nil && n < enough; h = h.next {
				n++
			}
		}
		if least < 0 || n < least {
			best, least = term, n
		}
	}
	return best
}

func (t *Table) link(h *hook) {
	if h.next = t.files[h.value]; h.next != nil {
		h.next.prev = h
	}
	t.files[h.value] = h
}

// Remove takes w out.
func (t *Table) Remove(w *Watch) {
	t.n--
	for i := range w.hooks {
		h := &w.hooks[i]
		if h.next != nil {
			h.next.prev = h.prev
		}
		switch {
		case h.prev != nil:
			h.prev.next = h.next
		case h.next != nil:
			t.files[h.value] = h.next
		default:
			delete(t.files, h.value)
		}
	}
	w.hooks, w.one = nil, [1]hook{}
}

// Find appends to dst the streams that l's record is for, each once.
func (t *Table) Find(dst []*Watch, l *Label) []*Watch {
	for values := l.values; len(values) > 0; {
		var v []byte
		v, values = nextValue(values)
		for h := t.files[string(v)]; h != nil; h = h.next {
			w := h.watch
			if w.found == l.Place+1 || len(h.item) > 1 && !h.item.matches(l.values) {
				continue
			}
			w.found = l.Place + 1
			dst = append(dst, w)
		}
	}
	return dst
}
