package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-io/rollcall/registry"
)

// The open API of Nacos 2 answers JSON objects of code, message and data, errors too.
const (
	v2Prefix        = "/nacos/v2/"
	v2NsPrefix      = "/nacos/v2/ns"
	v2ConsolePrefix = "/nacos/v2/console"
	v2CorePrefix    = "/nacos/v2/core"
)

var v2Routes = slices.Concat(v2InstanceRoutes, v2ServiceRoutes, v2OperatorRoutes, v2ClientRoutes, v2ConsoleRoutes)

// Codes of the open API.
const (
	codeMissing          = 10000
	codeDenied           = 10001
	codeInvalid          = 20002
	codeMediaType        = 20003
	codeNotFound         = 20004
	codeServiceName      = 21000
	codeWeight           = 21001
	codeMetadata         = 21002
	codeInstance         = 21004
	codeSelector         = 21006
	codeServiceExists    = 21007
	codeServiceNotExist  = 21008
	codeServiceDelete    = 21009
	codeHealthMissing    = 21010
	codeNamespaceIllegal = 22000
	codeNamespaceMissing = 22001
	codeServer           = 30000
)

var v2Messages = map[int]string{
	codeMissing: "parameter missing", codeDenied: "access denied", codeInvalid: "parameter validate error",
	codeMediaType: "MediaType Error", codeNotFound: "resource not found", codeServiceName: "service name error",
	codeWeight: "weight error", codeMetadata: "instance metadata error", codeInstance: "instance error",
	codeSelector: "selector error", codeServiceExists: "service already exist",
	codeServiceNotExist: "service not exist", codeServiceDelete: "service delete failure",
	codeHealthMissing: "healthy param miss", codeNamespaceIllegal: "illegal namespace",
	codeNamespaceMissing: "namespace not exist", codeServer: "server error",
}

// v2Fields gives the code for a refused value by the name of its parameter.
var v2Fields = map[string]int{
	"serviceName": codeServiceName, "weight": codeWeight, "metadata": codeMetadata, "selector": codeSelector,
	registry.KeyBeatTimeout: codeMetadata, registry.KeyDeleteTimeout: codeMetadata,
}

// v2Error is an error of the open API with its own code.
func v2Error(status, code int, data string) error {
	return &reply{status: status, code: code, text: data}
}

func v2Missing(name, kind string) error {
	return v2Error(http.StatusBadRequest, codeMissing, "Required parameter '"+name+"' type "+kind+" is not present")
}

// v2Unbound is a missing parameter of a route that binds by annotation.
func v2Unbound(name string) error {
	return v2Error(http.StatusBadRequest, codeMissing,
		"Required request parameter '"+name+"' for method parameter type String is not present")
}

// v2Code is the code of an error that brings none.
func (e *reply) v2Code() int {
	switch {
	case e.code != 0:
		return e.code
	case e.status == http.StatusNotFound:
		return codeNotFound
	case e.status == http.StatusForbidden:
		return codeDenied
	case e.status == http.StatusUnsupportedMediaType:
		return codeMediaType
	case e.status < http.StatusInternalServerError:
		return codeInvalid
	}
	return codeServer
}

// failV2 answers an error in the envelope.
func (r *request) failV2(e *reply) {
	code := e.v2Code()
	b := appendInt(append(r.buffer(), `{"code":`...), int64(code))
	b = appendString(append(b, `,"message":`...), v2Messages[code])
	b = appendString(append(b, `,"data":`...), e.text)
	r.out = append(b, '}')
	_ = r.write(e.status, typeJSON, r.out)
}

// v2Begin begins an answer; the data and a brace follow.
func (r *request) v2Begin() []byte {
	return append(r.buffer(), `{"code":0,"message":"success","data":`...)
}

// v2OK answers `"ok"`, v2True `true`, in the envelope.
func (r *request) v2OK() error { return r.json(append(r.v2Begin(), `"ok"}`...)) }

func (r *request) v2True() error { return r.json(append(r.v2Begin(), `true}`...)) }

// v2Commit commits a command and answers `"ok"`.
func (r *request) v2Commit(c registry.Command) error {
	if _, err := r.propose(c); err != nil {
		return err
	}
	return r.v2OK()
}

// v2Flag is a boolean of the open API, where `1` is true and other words are refused.
func (r *request) v2Flag(name string, fallback bool) (bool, error) {
	if r.optional(name, "") == "" {
		return fallback, nil
	}
	return r.boundFlag(name)
}

// v2Number is a number of the open API.
func (r *request) v2Number(name string, fallback int) (int, error) {
	v := r.optional(name, "")
	if v == "" {
		return fallback, nil
	}
	n, err := integer(v)
	if err != nil {
		return 0, registry.Invalid(name, v, "must be a number")
	}
	return n, nil
}

// wrongVerbV2 is what the open API says of a verb that a path does not know.
func (r *request) wrongVerbV2() error {
	b := append(r.buffer(), `{"code":500,"message":`...)
	b = appendString(b, "caused: Request method &#39;"+htmlSafe.Replace(shorten(r.gin.Request.Method))+"&#39; not supported;")
	return r.write(http.StatusInternalServerError, typeJSON, append(b, `,"data":null}`...))
}

// checkParams is the check that Nacos 2 runs before its handlers. Its refusals are texts
// with a line break, not envelopes.
func (r *request) checkParams() error {
	for _, c := range [...]struct {
		param, name, also string
		limit             int
	}{
		{"namespaceId", "namespaceId/tenant", "_-", registry.MaxNamespace},
		{"groupName", "group", "-_:.", registry.MaxGroup},
		{"clusterName", "cluster", "-_,", registry.MaxCluster},
	} {
		v, _ := r.params.get(c.param)
		if len(v) > c.limit && !strings.Contains(v, ",") {
			return badParam(fmt.Sprintf("Param '%s' is illegal, the param length should not exceed %d.", c.name, c.limit))
		}
		if !allBytes(v, c.also) {
			return badParam("Param '" + c.name + "' is illegal, illegal characters should not appear in the param.")
		}
	}
	if v := r.optional("port", ""); v != "" {
		if n, err := strconv.Atoi(v); err != nil || n < 0 || n > 65535 {
			return badParam("Param 'port' is illegal, the value should be between 0 and 65535.")
		}
	}
	return nil
}

func badParam(text string) error {
	return &reply{status: http.StatusBadRequest, text: text + "\r\n", bare: true, plain: true}
}
