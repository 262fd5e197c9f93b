package diag

import "fmt"

// Code numbers a kind of fault. Numbers are never used again for something else.
type Code int

// String is the code as it is printed and searched for.
func (c Code) String() string { return fmt.Sprintf("EMQ%03d", int(c)) }

// The codes, in families of ten: loading, directives, values, jobs, payload fields, features, the
// schema lock, names.
const (
	Load        Code = 1
	Syntax      Code = 2
	Unresolved  Code = 3
	NotOurs     Code = 4
	Write       Code = 5
	Constraints Code = 6
	TestFile    Code = 7
	NotBuilt    Code = 8
	Internal    Code = 9

	NearMiss         Code = 10
	UnknownDirective Code = 11
	UnknownOption    Code = 12
	OptionTwice      Code = 13
	Malformed        Code = 14
	Misplaced        Code = 15
	DirectiveTwice   Code = 16
	Missing          Code = 17

	BadDuration Code = 20
	BadNumber   Code = 21
	BadBackoff  Code = 22
	BadName     Code = 23
	BadWord     Code = 24
	BadCron     Code = 25
	BadZone     Code = 26
	BadIdent    Code = 27
	QueueTwice  Code = 28
	QueueEmpty  Code = 29

	UnknownQueue  Code = 30
	NoQueue       Code = 31
	NoTimeout     Code = 32
	NoAttempts    Code = 33
	KindTwice     Code = 34
	NotStruct     Code = 35
	Generic       Code = 36
	Unexported    Code = 37
	OnAlias       Code = 38
	EmbedsJob     Code = 39
	CannotEncode  Code = 40
	NoWayBack     Code = 41
	SameJSONName  Code = 42
	Swallowed     Code = 43
	FieldLost     Code = 44
	DashUnmarked  Code = 45
	AnyValue      Code = 46
	TagSyntax     Code = 47
	JSONOption    Code = 48
	Lock          Code = 49
	EmqTag        Code = 50
	NoText        Code = 51
	TagTwice      Code = 52
	ReservedName  Code = 54
	TagIgnored    Code = 55
	PointerMethod Code = 56
	BadSignature  Code = 57

	ResultNoRetain Code = 60
	BadResult      Code = 61
	UniqueNoField  Code = 62
	CronRequired   Code = 63
	WasUnknown     Code = 64
	BadVersion     Code = 65
	BadFrom        Code = 66
	RetiredAlive   Code = 67
	ResultChanged  Code = 68
	UniqueOverLane Code = 69

	LockFile      Code = 70
	FieldGone     Code = 71
	FieldRetyped  Code = 72
	FieldRequired Code = 73
	KindGone      Code = 74
	QueueMoved    Code = 75
	AliasGone     Code = 76
	VersionBack   Code = 77
	WasDiffers    Code = 78
	KeyChanged    Code = 79

	NameTaken Code = 80
	NamesMeet Code = 81
)
