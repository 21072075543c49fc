package registry

// AuthInit sets up accounts: the key that signs tokens and the first account, an
// administrator. Only the first one takes effect, for later ones see Accounts.Init.
type AuthInit struct {
	Key   string
	Admin User
}

// The commands about accounts. Each does what the method of Accounts does that its comment
// names, and answers the same errors.
type (
	// UserCreate is Accounts.AddUser.
	UserCreate struct{ User User }
	// UserUpdate is Accounts.SetUser.
	UserUpdate struct{ User User }
	// UserDelete is Accounts.DropUser.
	UserDelete struct{ Name string }
	// RoleAdd is Accounts.Grant.
	RoleAdd struct{ Binding RoleBinding }
	// RoleRemove is Accounts.Revoke.
	RoleRemove struct{ Binding RoleBinding }
	// PermissionAdd is Accounts.Allow.
	PermissionAdd struct{ Permission Permission }
	// PermissionRemove is Accounts.Forbid.
	PermissionRemove struct{ Permission Permission }
)

func (AuthInit) command()         {}
func (UserCreate) command()       {}
func (UserUpdate) command()       {}
func (UserDelete) command()       {}
func (RoleAdd) command()          {}
func (RoleRemove) command()       {}
func (PermissionAdd) command()    {}
func (PermissionRemove) command() {}

// Apply is a after a command about accounts; ok is false for every other command. When
// the command is refused or changes nothing, next is a itself.
func (a *Accounts) Apply(c Command) (next *Accounts, ok bool, err error) {
	switch c := c.(type) {
	case AuthInit:
		next, err = a.Init(c.Key, c.Admin)
	case UserCreate:
		next, err = a.AddUser(c.User)
	case UserUpdate:
		next, err = a.SetUser(c.User)
	case UserDelete:
		next, err = a.DropUser(c.Name)
	case RoleAdd:
		next, err = a.Grant(c.Binding)
	case RoleRemove:
		next, err = a.Revoke(c.Binding)
	case PermissionAdd:
		next, err = a.Allow(c.Permission)
	case PermissionRemove:
		next = a.Forbid(c.Permission)
	default:
		return a, false, nil
	}
	return next, true, err
}
