package gormplugin

import (
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/supply"
)

// The names of the plugin in gorm.Config.Plugins and of its callbacks.
const (
	pluginName    = "snowkey"
	assignName    = "snowflake:assign"
	ensureName    = "snowflake:ensure"
	reconcileName = "snowflake:reconcile"
	placeName     = "snowflake:place" // an update callback, if keys have shards
)

// GORM's own callbacks, around which the plugin registers its own.
const (
	anchorBefore = "gorm:before_create"
	anchorCreate = "gorm:create"
	anchorAfter  = "gorm:save_after_associations"
	anchorUpdate = "gorm:save_before_associations" // before it, of update
)

// ErrNoAnchor means that one of the callbacks of GORM around which the plugin
// registers its own is missing or was removed.
var ErrNoAnchor = errors.New("gormplugin: callback of GORM is missing")

// A Plugin assigns keys from a source to the rows that GORM creates. Make it with [New] and
// install it with db.Use. One Plugin may serve several databases, and is safe for
// concurrent use. The zero Plugin has no source, and db.Use refuses it.
type Plugin struct {
	src     Source
	supply  *supply.Supply // of src; nil if it is refused
	refused error          // why
	config
	records sync.Map // of each InTx that runs, the pool of its transaction to its *outcome.Record
}

var _ gorm.Plugin = (*Plugin)(nil)

// New makes a plugin that takes keys from src:
//
//	if err := db.Use(gormplugin.New(gen)); err != nil { … }
//
// New accepts a nil src, or a nil pointer or func in it, for which db.Use then returns
// [ErrNoSource].
func New(src Source, opts ...Option) *Plugin {
	p := &Plugin{src: src}
	for _, opt := range opts {
		opt(&p.config)
	}
	p.supply, p.refused = supply.New(src, supply.Limit(p.integers && !p.wide))
	return p
}

// Name returns "snowkey", by which GORM keeps the plugin. A second db.Use of any Plugin on
// the same database returns gorm.ErrRegistered.
func (*Plugin) Name() string { return pluginName }

// Initialize registers the callbacks; db.Use calls it. It returns [ErrNoSource], the error
// of an invalid layout, [ErrWideKey], gorm.ErrRegistered if another Plugin works on db under
// another name, or [ErrNoAnchor] with the name of the missing callback. After an error
// nothing is registered.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if err := p.unusable(); err != nil {
		return err
	}
	if err := validate(p.layout); err != nil {
		return err
	}
	create := db.Callback().Create()
	// For an unknown anchor GORM reports no error, and runs the callback last, after the
	// insert and the commit, when it is too late for keys.
	if create.Get(assignName) != nil { // under another name, since GORM refuses this one
		return fmt.Errorf("gormplugin: another Plugin fills the models of this database: %w", gorm.ErrRegistered)
	}
	for _, anchor := range []string{anchorBefore, anchorCreate, anchorAfter} {
		if create.Get(anchor) == nil {
			return fmt.Errorf("%w: %s", ErrNoAnchor, anchor)
		}
	}
	in := &installation{plugin: p, policy: p.policy(db), traits: traitsOf(db)}
	var err error
	if p.unnest && in.traits.Arrays {
		err = new(unnest).register(db)
	}
	if p.supply.Sharded() {
		// An update creates associations too.
		update := db.Callback().Update()
		if update.Get(anchorUpdate) == nil {
			return fmt.Errorf("%w: %s", ErrNoAnchor, anchorUpdate)
		}
		err = errors.Join(err, update.Before(anchorUpdate).Register(placeName, in.placeUpdate))
	}
	return errors.Join(
		err,
		// Before the transaction, so that a source that waits holds no connection, and
		// before the hooks, which see the keys.
		create.Before("*").Register(assignName, in.assign),
		create.Before(anchorCreate).Register(ensureName, in.ensure),
		// After alone would register it last, behind the commit.
		create.After(anchorCreate).Before(anchorAfter).Register(reconcileName, in.reconcile),
		in.watchStatements(db),
	)
}

// validate returns the error of the Validate method of l, if it has one. An invalid layout
// would silently select no rows.
func validate(l Layout) error {
	if v, ok := l.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return fmt.Errorf("gormplugin: WithLayout: %w", err)
		}
	}
	return nil
}

// traitsOf returns the traits of db. Their dialect is not valid if the plugin does not know it.
func traitsOf(db *gorm.DB) *dialect.Traits { return dialect.OfDialector(db.Name()) }

// Installed reports whether a [Plugin] works on db: it was installed with db.Use, and none
// of its create callbacks was removed, replaced or moved since. Without the plugin GORM
// stores the key that it finds, which is zero. [Plugin.Verify] says what is wrong, and looks
// at the models as well.
func Installed(db *gorm.DB) bool {
	if db == nil || db.Config == nil {
		return false
	}
	_, ok := db.Plugins[pluginName].(*Plugin)
	return ok && inPlace(db) == nil
}
