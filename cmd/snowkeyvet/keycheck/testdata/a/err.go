package a

import (
	"context"
	"log"

	"github.com/snowkey/snowkey/types"
)

type source interface {
	Next(context.Context) (types.Snowflake, error)
}

func save(types.Snowflake) {}

func used(ctx context.Context, s source, o *Order) {
	id, err := s.Next(ctx)
	if err != nil {
		log.Print(err)
	}
	o.ID = id // want `the types.Snowflake of Next is used although the error is not nil`
}

func inBranch(ctx context.Context, s source, o *Order) error {
	id, err := s.Next(ctx)
	if err != nil {
		save(id) // want `is used although the error is not nil`
		return err
	}
	save(id)
	return nil
}

func inBranchOfBranch(ctx context.Context, s source, retried bool) error {
	id, err := s.Next(ctx)
	if err != nil {
		if retried {
			save(id) // want `is used although the error is not nil`
		}
		return err
	}
	return nil
}

func before(ctx context.Context, s source) error {
	id, err := s.Next(ctx)
	save(id) // want `is used before its error is looked at`
	return err
}

func dropped(ctx context.Context, s source) {
	id, _ := s.Next(ctx) // want `is used and its error dropped`
	save(id)
}

func right(ctx context.Context, s source, o *Order) (types.Snowflake, error) {
	var err error
	if o.ID, err = s.Next(ctx); err != nil {
		log.Fatal(err)
	}
	id, err := s.Next(ctx)
	if err != nil {
		log.Printf("id %d, error %v", id, err)
		return id, err
	}
	for range 3 {
		id, err = s.Next(ctx)
		if err != nil {
			continue
		}
		save(id)
	}
	_, err = s.Next(ctx)
	log.Println(s.Next(ctx))
	return s.Next(ctx)
}
