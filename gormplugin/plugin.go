package gormplugin

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
)

// The name of the plugin in gorm.Config.Plugins, and of its callbacks.
const (
	pluginName    = "snowkey"
	assignName    = "snowflake:assign"
	ensureName    = "snowflake:ensure"
	reconcileName = "snowflake:reconcile"
)

// GORM's own create callbacks, between which ours stand.
const (
	anchorBefore = "gorm:before_create"
	anchorCreate = "gorm:create"
	anchorAfter  = "gorm:save_after_associations"
)

// ErrNoAnchor means that a callback of GORM, beside which the plugin has to
// stand, is missing or was removed.
var ErrNoAnchor = errors.New("gormplugin: create callback is missing")

// An Option changes a [Plugin] that is being made; see [WithLayout].
type Option interface{ apply(*Plugin) }

// A Plugin assigns keys from a source to what GORM creates. Make it with [New]
// and install it with db.Use. It holds nothing of a database, so one Plugin may
// serve several. Safe for concurrent use, as its source is. The zero Plugin has
// no source, and Use refuses it.
type Plugin struct {
	src    Source
	layout Layout // if not that of src
}

var _ gorm.Plugin = (*Plugin)(nil)

// New makes a plugin that takes keys from src:
//
//	if err := db.Use(gormplugin.New(gen)); err != nil { … }
//
// A nil src, or a nil pointer or func in it, is not found out here but by
// db.Use, which returns [ErrNoSource].
func New(src Source, opts ...Option) *Plugin {
	p := &Plugin{src: src}
	for _, opt := range opts {
		opt.apply(p)
	}
	return p
}

// Name returns "snowkey". GORM keeps plugins by name, so a second db.Use of any
// Plugin on the same database is gorm.ErrRegistered.
func (*Plugin) Name() string { return pluginName }

// Initialize registers the callbacks. db.Use calls it. It returns
// [ErrNoSource], the error of a layout that is not valid, or [ErrNoAnchor] with
// the name of the callback that is missing; then nothing is registered.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if p == nil || isNil(p.src) {
		return ErrNoSource
	}
	if err := validate(p.layout); err != nil {
		return err
	}
	create := db.Callback().Create()
	// GORM does not complain about an anchor that it does not know: it puts the
	// callback last, behind the insert and the commit, where keys come too late.
	for _, anchor := range []string{anchorBefore, anchorCreate, anchorAfter} {
		if create.Get(anchor) == nil {
			return fmt.Errorf("%w: %s", ErrNoAnchor, anchor)
		}
	}
	in := &installation{src: p.src}
	return errors.Join(
		// Ahead of the transaction: a source that waits then holds no
		// connection, and the hooks see the keys.
		create.Before("*").Register(assignName, in.assign),
		create.Before(anchorCreate).Register(ensureName, in.ensure),
		// After alone would mean last, behind the commit.
		create.After(anchorCreate).Before(anchorAfter).Register(reconcileName, in.reconcile),
	)
}

// Installed reports whether a [Plugin] works on db: it was installed with db.Use, and
// none of its create callbacks was removed or replaced since. Without them GORM stores
// the key that it finds: zero, for the first row.
func Installed(db *gorm.DB) bool {
	if db == nil || db.Config == nil {
		return false
	}
	if _, ok := db.Plugins[pluginName].(*Plugin); !ok {
		return false
	}
	var in *installation
	for name, own := range map[string]func(*gorm.DB){assignName: in.assign, ensureName: in.ensure, reconcileName: in.reconcile} {
		// The code alone is compared: each installation has a func of its own.
		if reflect.ValueOf(db.Callback().Create().Get(name)).Pointer() != reflect.ValueOf(own).Pointer() {
			return false
		}
	}
	return true
}

// isNil reports whether v, an interface, is nil, or holds something nil that
// would panic only when it is used.
func isNil(value any) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}
