"""What of STS and of SSO hands out keys, for a server whose class brings send(), send_xml() and refuse()."""

import time


class KeyGiver:
    # Roles: the part of STS that hands out keys.

    def give_role(self, wanted):
        self.path = "/"
        action, role = wanted["Action"][0], wanted["RoleArn"][0]
        signed = "/sts/aws4_request" in self.headers.get("Authorization", "")
        proven = signed if action == "AssumeRole" else wanted["WebIdentityToken"] == ["who I am"]
        if not proven or role.endswith("denied"):
            return self.refuse(403, "AccessDenied", f"you may not have {role}")
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        return self.send_xml(f"<{action}Response><{action}Result><Credentials><AccessKeyId>fresh</AccessKeyId>"
                             f"<SecretAccessKey>secret</SecretAccessKey><SessionToken>{role}</SessionToken>"
                             f"<Expiration>{expires}</Expiration></Credentials></{action}Result></{action}Response>")

    # SSO: renewing a sign-in, and keys for one.

    def renew_sign_in(self, wanted):
        if (wanted["grantType"], wanted["clientId"], wanted["clientSecret"]) != ("refresh_token", "c", "s"):
            return self.send(b'{"error": "invalid_client"}', 401)
        if wanted["refreshToken"] != "again":
            return self.send(b'{"error": "invalid_grant"}', 400)
        return self.send(b'{"accessToken": "renewed", "expiresIn": 3600, "refreshToken": "and again", "tokenType": "Bearer"}')

    def give_keys(self, wanted):
        if self.headers.get("x-amz-sso_bearer_token") not in ("signed in", "renewed"):
            return self.send(b'{"message": "Session token not found or invalid"}', 401,
                             [("x-amzn-ErrorType", "UnauthorizedException")])
        expires = int(time.time() + 3600) * 1000
        return self.send(b'{"roleCredentials": {"accessKeyId": "fresh", "secretAccessKey": "secret", "sessionToken": "%s",'
                         b' "expiration": %d}}' % (f"{wanted['role_name']} of {wanted['account_id']}".encode(), expires))
