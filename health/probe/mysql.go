package probe

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rollcall-io/rollcall/registry"
)

const (
	// mysqlConnect bounds connecting, and each wait for the server's bytes while logging
	// in; mysqlQuery bounds the command (Nacos 1.4.7, MysqlHealthCheckProcessor).
	mysqlConnect = 500 * time.Millisecond
	mysqlQuery   = time.Second
	mysqlTimeout = mysqlConnect + mysqlQuery
)

// MySQL logs in with the settings' user and password and runs their command, or only logs
// in without one. It succeeds when the command ran, unless that asks for read_only and the
// answer is ON: then the host lives but is no master, which counts like a timeout. An
// error that the server sends is a clear no.
type MySQL struct{}

// Check connects to address, host:port, and closes the connection at once.
func (MySQL) Check(ctx context.Context, address string, settings registry.Checker) Outcome {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", address
	cfg.User, cfg.Passwd = settings.User, settings.Password
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = mysqlConnect, mysqlQuery, mysqlConnect
	cfg.Logger = &mysql.NopLogger{} // the outcome says it
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return Down
	}
	conn, err := connector.Connect(ctx)
	if err != nil {
		return mysqlFailure(err)
	}
	defer conn.Close()
	if strings.TrimSpace(settings.Command) == "" {
		return Up
	}
	readOnly, err := ask(ctx, conn, settings.Command)
	if err != nil {
		return mysqlFailure(err)
	}
	if readOnly {
		return Down
	}
	return Up
}

// ask runs a command and tells whether its first row says that read_only is ON.
func ask(ctx context.Context, conn driver.Conn, command string) (readOnly bool, err error) {
	queryer, ok := conn.(driver.QueryerContext)
	if !ok {
		return false, errors.New("probe: the driver makes no queries")
	}
	rows, err := queryer.QueryContext(ctx, command, nil)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	return len(row) == 2 && text(row[0]) == "read_only" && text(row[1]) == "ON", nil
}

func text(v driver.Value) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	}
	return ""
}

func mysqlFailure(err error) Outcome {
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return Refused
	}
	return failure(err)
}
