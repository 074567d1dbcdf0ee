package gormplugin

import "gorm.io/gorm/schema"

// Filled returns the fields of s to which the plugin assigns keys, the primary key
// first where it is one of them. It goes by the relations that GORM has parsed so
// far: a has-one or has-many counts once the model that declares it is parsed. The
// error is the [ModelError] that every create of the model returns. Safe for
// concurrent use.
func Filled(s *schema.Schema) ([]*schema.Field, error) {
	m := model{schema: s}
	p := m.plan()
	if p.err != nil {
		return nil, p.err
	}
	fields := make([]*schema.Field, len(p.columns))
	for i := range p.columns {
		fields[i] = p.columns[i].field
	}
	return fields, nil
}
