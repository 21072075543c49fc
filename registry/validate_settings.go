package registry

import "strconv"

// ValidateServiceSpec checks the settings of a service: protect threshold, metadata and
// selector.
func ValidateServiceSpec(s ServiceSpec) error {
	if err := ValidateProtectThreshold(s.ProtectThreshold); err != nil {
		return err
	}
	if err := ValidateMetadata(s.Metadata); err != nil {
		return err
	}
	if s.Selector.Type != SelectorNone && s.Selector.Type != SelectorLabel {
		return Invalid("selector", s.Selector.Type, "must be of type none or label")
	}
	return validateSetting("selector", s.Selector.Expression)
}

// ValidateClusterSettings checks the settings of a cluster: name, metadata and checker.
func ValidateClusterSettings(c Cluster) error {
	if err := ValidateCluster(c.Name); err != nil {
		return err
	}
	if err := ValidateMetadata(c.Metadata); err != nil {
		return err
	}
	switch c.Checker.Type {
	case CheckTCP, CheckHTTP, CheckMySQL, CheckNone:
	default:
		return Invalid("healthChecker", c.Checker.Type, "must be of type TCP, HTTP, MYSQL or NONE")
	}
	if n := c.Checker.ExpectedCode; n < 0 || n > 999 {
		return Invalid("expectedResponseCode", strconv.Itoa(n), "must be a number from 0 to 999")
	}
	for _, f := range []struct{ field, value string }{
		{"path", c.Checker.Path}, {"headers", c.Checker.Headers}, {"user", c.Checker.User},
		{"pwd", c.Checker.Password}, {"cmd", c.Checker.Command},
	} {
		if err := validateSetting(f.field, f.value); err != nil {
			return err
		}
	}
	return nil
}

// ValidateNamespaceRecord checks a namespace's record.
func ValidateNamespaceRecord(n Namespace) error {
	if n.ID == "" {
		return Invalid("namespaceId", n.ID, "must not be empty")
	}
	if len(n.ID) > MaxNamespace {
		return tooLong("namespaceId", n.ID, MaxNamespace)
	}
	if !plain(n.ID) {
		return Invalid("namespaceId", n.ID, "holds control characters or is not UTF-8")
	}
	if err := validateSetting("namespaceName", n.Name); err != nil {
		return err
	}
	return validateSetting("namespaceDesc", n.Description)
}

func validateSetting(field, value string) error {
	if len(value) > MaxSetting {
		return tooLong(field, value, MaxSetting)
	}
	if !plain(value) {
		return Invalid(field, value, "holds control characters or is not UTF-8")
	}
	return nil
}
