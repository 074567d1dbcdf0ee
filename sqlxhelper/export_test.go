package sqlxhelper

// DescribeText is for tests that expect every statement.
const DescribeText = describeText
