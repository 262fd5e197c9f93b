// Package search is the jobs of docs/unique.md.
package search

//emq:queue search timeout=30s attempts=5

// Index brings a document into the index, as it is now.
//
//emq:job unique=start,debounce
type Index struct {
	Document string `json:"document" emq:"unique"`
	Revision int    `json:"revision"`
}

// Reindex builds the index anew. It has no fields, so there is one at a time.
//
//emq:job unique=done timeout=1h
type Reindex struct{}

// Suggest mails the searches that found nothing, to a user once a day at most.
//
//emq:job unique=24h
type Suggest struct {
	UserID int64 `json:"user_id" emq:"unique"`
}
