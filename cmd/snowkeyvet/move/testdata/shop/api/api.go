package api

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"gorm.io/gorm"

	"example.com/shop/model"
)

type Store interface {
	Item(id uint) (*model.Item, error)
	After(last uint, limit int) error
}

type store struct{ db *gorm.DB }

func (s store) Item(id uint) (*model.Item, error) {
	var item model.Item
	err := s.db.First(&item, "id = ?", id).Error
	return &item, err
}

func (s store) After(last uint, limit int) error {
	return s.db.Where("quantity > ? AND id > ?", limit, last).Error
}

var _ Store = store{}

type reply struct {
	ID    uint `json:"id"`
	Count uint `json:"count"`
	Total int  `json:"total"`
}

// Get returns an item.
//
// @Param id path int true "the item"
// @Param count query int false "how many"
func Get(s Store, param, limit string) (*reply, string, error) {
	raw, err := strconv.ParseUint(param, 10, 64)
	if err != nil {
		return nil, "", err
	}
	n, err := strconv.Atoi(limit)
	if err != nil {
		return nil, "", err
	}
	item, err := s.Item(uint(raw))
	if err != nil {
		return nil, "", err
	}
	seen := map[uint][]*model.Item{}
	for _, other := range []uint{1, 2} {
		seen[other] = append(seen[other], item)
	}
	first := uint(math.MaxUint)
	if item.ID < first {
		first = item.ID
	}
	missing := 7
	item.ReplacesID = &missing
	_ = float64(item.ID)
	sorted := []int{*item.ReplacesID}
	sort.Ints(sorted)
	seen[item.ID] = nil
	return &reply{ID: first, Count: uint(len(seen)), Total: n}, strconv.FormatUint(uint64(item.ID), 10), nil
}

func open() (*gorm.DB, error) {
	db, err := gorm.Open("shop.db")
	if err != nil {
		return nil, err
	}
	return db, db.AutoMigrate(&model.Order{}, &model.Item{})
}

func customer(o *model.Order, key model.CustomerKey) bool { return o.CustomerID == uint(key) }

func order(db *gorm.DB, o *model.Order, external uint) uint {
	db.Where("external_id = ?", external)
	db.Limit(o.ID)
	return o.ID
}

type line struct {
	Item uint `json:"item_id"`
}

func (l *line) of(i *model.Item) { l.Item = i.ID }

// A change is only decoded, so that no value shows what Item is.
type change struct {
	Item  uint `json:"item_id"`
	Count uint `json:"count"`
}

// Type arguments in the source are those of keys too, of functions of this module and of others.
func grouped(items []*model.Item, item *model.Item) (map[uint][]*model.Item, int) {
	at := slices.IndexFunc[[]uint, uint]([]uint{1, 2}, func(id uint) bool { return id == item.ID })
	return group[*model.Item, uint](items, func(i *model.Item) uint { return i.ID }), at
}

func group[T any, K comparable](list []T, key func(T) K) map[K][]T {
	groups := map[K][]T{}
	for _, t := range list {
		groups[key(t)] = append(groups[key(t)], t)
	}
	return groups
}
