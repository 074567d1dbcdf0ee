package gormplugin

import "gorm.io/gorm/schema"

// Filled returns the fields of s to which the plugin assigns keys. The primary key
// comes first if it is one of them. Filled uses the relations that GORM has parsed
// so far. A has-one or has-many counts once the model that declares it is parsed.
// The error is the [ModelError] that every create of the model returns. Safe for
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
