package sqlxcases

import (
	"github.com/snowkey/snowkey/types"
)

type status string

type joined struct{ Name string }

// row is a narrow row; the CHECK makes one that fails.
type row struct {
	ID types.Snowflake `db:"id"`
	N  int             `db:"n"`
	A  string          `db:"a"`
	B  string          `db:"b"`
	C  string          `db:"c"`
	D  string          `db:"d"`
}

const rowsTable = "CREATE TABLE many_rows (id BIGINT PRIMARY KEY, n BIGINT NOT NULL CHECK (n >= 0), " +
	"a VARCHAR(20), b VARCHAR(20), c VARCHAR(20), d VARCHAR(20))"

// order, item, note and invoice are three levels. They have each kind of child
// field and of foreign key.
type order struct {
	types.Model
	Number  string   `db:"number"`
	Notes   []*note  `db:"-" snowkey:"notes,fk=order_id"`
	Items   []item   `db:"-" snowkey:"order_items,fk=order_id"`
	Invoice *invoice `db:"-" snowkey:"invoices,fk=order_id"`
}

type item struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
	SKU     string          `db:"sku"`
	Notes   []*note         `db:"-" snowkey:"notes,fk=item_id"`
}

// note belongs to an order or to an item, so its table comes after both.
type note struct {
	types.Model
	OrderID *types.Snowflake    `db:"order_id"`
	ItemID  types.NullSnowflake `db:"item_id"`
	Text    string              `db:"body"`
}

type invoice struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
}

var orderTables = []string{
	"CREATE TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20) NOT NULL)",
	"CREATE TABLE order_items (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, sku VARCHAR(20) NOT NULL UNIQUE, FOREIGN KEY (order_id) REFERENCES orders (id))",
	"CREATE TABLE notes (id BIGINT PRIMARY KEY, order_id BIGINT, item_id BIGINT, body VARCHAR(20), FOREIGN KEY (order_id) REFERENCES orders (id), FOREIGN KEY (item_id) REFERENCES order_items (id))",
	"CREATE TABLE invoices (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL, FOREIGN KEY (order_id) REFERENCES orders (id))",
}

// tree refers to itself.
type tree struct {
	types.Model
	ParentID types.NullSnowflake `db:"parent_id"`
	Branches []tree              `db:"-" snowkey:"trees,fk=parent_id"`
}

const treesTable = "CREATE TABLE trees (id BIGINT PRIMARY KEY, parent_id BIGINT, FOREIGN KEY (parent_id) REFERENCES trees (id))"

// folder and file refer to each other: an archive is a file that holds folders.
type folder struct {
	types.Model
	FileID types.NullSnowflake `db:"file_id"`
	Files  []*file             `db:"-" snowkey:"files,fk=folder_id"`
}

type file struct {
	types.Model
	FolderID types.Snowflake `db:"folder_id"`
	Folders  []folder        `db:"-" snowkey:"folders,fk=file_id"`
}

// purchase belongs to a buyer and has entries, which belong to it and to goods. Goods belong to
// a maker, and a buyer to the one who brought it, so there are rows to be written first at each
// of three levels, one of them in the middle.
type purchase struct {
	types.Model
	BuyerID types.Snowflake `db:"buyer_id"`
	Buyer   *buyer          `db:"-" snowkey:"buyers,belongs_to=buyer_id"`
	Entries []entry         `db:"-" snowkey:"entries,fk=purchase_id"`
}

type buyer struct {
	types.Model
	ByID *types.Snowflake `db:"by_id"`
	By   *buyer           `db:"-" snowkey:"buyers,belongs_to=by_id"`
}

type entry struct {
	types.Model
	PurchaseID types.Snowflake     `db:"purchase_id"`
	GoodsID    types.NullSnowflake `db:"goods_id"`
	Purchase   *purchase           `db:"-" snowkey:"purchases,belongs_to=purchase_id"`
	Goods      *goods              `db:"-" snowkey:"goods,belongs_to=goods_id"`
	Remarks    []*remark           `db:"-" snowkey:"remarks,fk=entry_id"`
}

type goods struct {
	types.Model
	MakerID types.Snowflake `db:"maker_id"`
	Maker   *maker          `db:"-" snowkey:"makers,belongs_to=maker_id"`
}

type maker struct{ types.Model }

type remark struct {
	types.Model
	EntryID types.Snowflake  `db:"entry_id"`
	GoodsID *types.Snowflake `db:"goods_id"`
	Goods   *goods           `db:"-" snowkey:"goods,belongs_to=goods_id"`
}

var purchaseTables = []string{
	"CREATE TABLE buyers (id BIGINT PRIMARY KEY, by_id BIGINT, FOREIGN KEY (by_id) REFERENCES buyers (id))",
	"CREATE TABLE makers (id BIGINT PRIMARY KEY)",
	"CREATE TABLE goods (id BIGINT PRIMARY KEY, maker_id BIGINT NOT NULL, FOREIGN KEY (maker_id) REFERENCES makers (id))",
	"CREATE TABLE purchases (id BIGINT PRIMARY KEY, buyer_id BIGINT NOT NULL, FOREIGN KEY (buyer_id) REFERENCES buyers (id))",
	"CREATE TABLE entries (id BIGINT PRIMARY KEY, purchase_id BIGINT NOT NULL, goods_id BIGINT, FOREIGN KEY (purchase_id) REFERENCES purchases (id), FOREIGN KEY (goods_id) REFERENCES goods (id))",
	"CREATE TABLE remarks (id BIGINT PRIMARY KEY, entry_id BIGINT NOT NULL, goods_id BIGINT, FOREIGN KEY (entry_id) REFERENCES entries (id), FOREIGN KEY (goods_id) REFERENCES goods (id))",
}

// club and member refer to each other. A member leads a club. A member may be in a
// club, and another member may have brought it.
type club struct {
	types.Model
	LeaderID types.NullSnowflake `db:"leader_id"`
	Leader   *member             `db:"-" snowkey:"members,belongs_to=leader_id"`
	Members  []*member           `db:"-" snowkey:"members,fk=club_id"`
}

type member struct {
	types.Model
	ClubID types.NullSnowflake `db:"club_id"`
	ByID   types.NullSnowflake `db:"by_id"`
	Club   *club               `db:"-" snowkey:"clubs,belongs_to=club_id"`
	By     *member             `db:"-" snowkey:"members,belongs_to=by_id"`
}
