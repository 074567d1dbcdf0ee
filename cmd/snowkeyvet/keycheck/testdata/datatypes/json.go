// Package datatypes stands for gorm.io/datatypes in tests.
package datatypes

type JSONArrayExpression struct{}

func JSONArrayQuery(column string) *JSONArrayExpression { return &JSONArrayExpression{} }

func (e *JSONArrayExpression) Contains(value any, keys ...string) *JSONArrayExpression { return e }
