package sqlxhelper

// An Option changes a [Helper] as [New] makes it, or as [Helper.With] does for
// some calls. An option that is given twice counts as given last.
type Option func(*config)

// A config is what the options say. It is copied with its Helper, so an option
// replaces slices and never appends to them.
type config struct {
	dialect   *Dialect // nil: by the driver name
	progress  func(done, total int)
	columns   []string // nil: all
	omit      []string
	conflict  conflict
	returning []string // nil: none; empty: all
	copy      copying
}

// WithDialect says which dialect all databases speak that the Helper is given,
// whatever their driver names are. A dialect that is none of the constants makes
// every call an error that matches [ErrDriver].
func WithDialect(d Dialect) Option {
	return func(c *config) { c.dialect = &d }
}

// OnProgress has report called during each call, after every statement, with how
// many rows of the call have been sent and how many there are, children
// included. The first report of a call is smaller than total if more than one
// statement is needed; the last one equals total. It comes from the goroutine of
// the call, inside the transaction, so it should be quick, and what it was told
// is undone if the call fails after all. A nil report is none.
func OnProgress(report func(done, total int)) Option {
	return func(c *config) { c.progress = report }
}
