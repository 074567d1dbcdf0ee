package gormplugin

// order returns the numbers of the rows in an order that obeys every edge, and otherwise as
// the rows were found. If edges form a circle, it first ignores those of slices, and then
// breaks the circle at a row that was found late.
func (g *graph) order() []int {
	g.in = g.edgesBy(func(e edge) int { return e.second })
	out := g.edgesBy(func(e edge) int { return e.first })
	o := &ordering{graph: g, waits: make([]wait, len(g.rows)), on: make([]bool, len(g.rows))}
	for i := range g.edges {
		o.count(&g.edges[i], 1)
	}
	for i := range g.rows {
		o.enqueue(i)
	}
	order := make([]int, len(g.rows))
	for n := range order {
		i := o.next()
		o.waits[i].placed = true
		order[n] = i
		for _, n := range out.of(i) {
			e := &g.edges[n]
			o.count(e, -1)
			o.enqueue(e.second)
		}
	}
	return order
}

// An ordering is the state of [graph.order].
type ordering struct {
	graph  *graph
	waits  []wait
	queue  queue // see enqueue
	oldest int   // no row before it is left

	// path holds a row that waits, a row that this one waits for, and so on. It is kept
	// from one circle to the next, because a doubly linked list has a circle at each row.
	path []int
	on   []bool // whether a row is on path
}

// A wait says what a row waits for.
type wait struct {
	rows, neighbours int  // to come before it: by reference, and in a slice
	placed           bool // the row is in the order
}

// count adds n to what the second row of e waits for.
func (o *ordering) count(e *edge, n int) {
	switch w := &o.waits[e.second]; {
	case e.by == nil:
		w.neighbours += n
	case e.first != e.second:
		w.rows += n
	}
}

// enqueue puts row i into the queue, if it waits for no parent. A row that waits for
// neighbours is behind all rows that wait for nothing, and may come a second time.
func (o *ordering) enqueue(i int) {
	switch w := &o.waits[i]; {
	case w.placed || w.rows > 0:
	case w.neighbours > 0:
		o.queue.push(i + len(o.waits))
	default:
		o.queue.push(i)
	}
}

// next returns the row that comes next.
func (o *ordering) next() int {
	for len(o.queue) > 0 {
		if i := o.queue.pop() % len(o.waits); !o.waits[i].placed {
			return i
		}
	}
	return o.inCircle() // all that are left wait for one another
}

// inCircle returns a row of a circle of references. The oldest row that waits need not be
// in a circle itself, so inCircle follows what it waits for until it meets a row again.
func (o *ordering) inCircle() int {
	pop := func() {
		last := len(o.path) - 1
		o.on[o.path[last]] = false
		o.path = o.path[:last]
	}
	for len(o.path) > 0 && o.waits[o.path[len(o.path)-1]].placed {
		pop()
	}
	for o.waits[o.oldest].placed {
		o.oldest++
	}
	i := o.oldest
	if len(o.path) > 0 {
		i = o.awaited(o.path[len(o.path)-1])
	}
	for !o.on[i] {
		o.path, o.on[i] = append(o.path, i), true
		i = o.awaited(i)
	}
	for o.on[i] {
		pop()
	}
	return i
}

// awaited returns the first parent that row i, which is in or behind a circle, waits for.
func (o *ordering) awaited(i int) int {
	for _, n := range o.graph.in.of(i) {
		if e := &o.graph.edges[n]; e.by != nil && e.first != i && !o.waits[e.first].placed {
			return e.first
		}
	}
	return i
}

// An edgeGroups holds the numbers of edges, in order, grouped by the row at one end.
type edgeGroups struct{ starts, list []int }

// of returns the edges of row i.
func (e edgeGroups) of(i int) []int { return e.list[e.starts[i]:e.starts[i+1]] }

func (g *graph) edgesBy(end func(edge) int) edgeGroups {
	starts := make([]int, len(g.rows)+2)
	for _, e := range g.edges {
		starts[end(e)+2]++
	}
	for i := 2; i < len(starts); i++ {
		starts[i] += starts[i-1]
	}
	list := make([]int, len(g.edges))
	for n, e := range g.edges {
		at := &starts[end(e)+1]
		list[*at] = n
		*at++
	}
	return edgeGroups{starts[:len(g.rows)+1], list}
}

// A queue is a heap of numbers, the smallest first.
type queue []int

func (q *queue) push(n int) {
	list := append(*q, n)
	for i := len(list) - 1; i > 0 && list[(i-1)/2] > list[i]; i = (i - 1) / 2 {
		list[(i-1)/2], list[i] = list[i], list[(i-1)/2]
	}
	*q = list
}

func (q *queue) pop() int {
	list := *q
	first, last := list[0], len(list)-1
	list[0] = list[last]
	list = list[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next+1 < len(list) && list[next+1] < list[next] {
			next++
		}
		if next >= len(list) || list[i] <= list[next] {
			break
		}
		list[i], list[next] = list[next], list[i]
		i = next
	}
	*q = list
	return first
}
