module gorm.io/datatypes

go 1.25.0
