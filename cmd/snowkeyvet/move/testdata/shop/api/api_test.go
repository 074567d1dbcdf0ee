package api

import (
	"testing"

	"example.com/shop/model"
	"example.com/shop/testify/assert"
)

func TestReply(t *testing.T) {
	const want = `{"id":1,"count":2}`
	if r := (reply{ID: uint(1)}); r.ID != 1 {
		t.Error(want)
	}
}

func TestLine(t *testing.T) {
	gotID := 0
	for id := range map[uint]bool{7: true} {
		gotID = int(model.Item{ID: id}.ID)
	}
	assert.Equal(t, 7, gotID)
	assert.Equal(t, 1, len("a"), "an item", gotID)
	seen := map[uint]bool{(&model.Item{}).ID: true}
	assert.Contains(t, seen, uint(0))
}
