package httpapi

// access says what must hold before the handler of a route runs: what it needs of the
// node, and the permission that it asks for when the server runs with accounts. Every
// route declares one of the values below; the zero value is no declaration, and a test
// fails on it.
type access struct {
	state  need
	right  right
	writes bool
}

// need is what a route needs of the node.
type need uint8

const (
	needNothing    need = iota // answered in every state of the node
	needReady                  // not before the node was ready
	needConsistent             // likewise, and the request may ask for consistency
)

// right is what a caller must be allowed to do.
type right uint8

const (
	rightUndeclared      right = iota
	rightNone                  // nothing: login, liveness and readiness
	rightUser                  // any account: what shows nothing of a namespace
	rightService               // the service that the request names, or its whole namespace
	rightNamespace             // the whole namespace, whatever service the request names
	rightNativeNamespace       // the namespace that a request of the native API names
	rightDom                   // the service in `dom`, whatever else the request names
	rightStatusKey             // the service in `key`, spelled as GET /instance/statuses has it
	rightEverywhere            // the namespace that the request names, all of them when it names none
	rightAllNamespaces         // all namespaces, whatever the request names
	rightOwner                 // the account that the request names is the caller's, or administrator
	rightAdmin                 // administrator
)

var (
	probe       = access{needNothing, rightNone, false}
	login       = access{needReady, rightNone, false}
	reads       = access{needConsistent, rightService, false}
	write       = access{needReady, rightService, true}
	scans       = access{needConsistent, rightNamespace, false}
	nativeScans = access{needConsistent, rightNativeNamespace, false}
	domReads    = access{needConsistent, rightDom, false}
	statusReads = access{needConsistent, rightStatusKey, false}
	everywhere  = access{needConsistent, rightEverywhere, false}
	allNames    = access{needConsistent, rightAllNamespaces, false}
	shared      = access{needConsistent, rightUser, false}
	ownWrite    = access{needReady, rightOwner, true}
	figures     = access{needNothing, rightUser, false}
	adminReads  = access{needConsistent, rightAdmin, false}
	adminWrite  = access{needReady, rightAdmin, true}
)
