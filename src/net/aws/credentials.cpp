#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/aws.hpp>

#include "credential_process.hpp"
#include "instance.hpp"
#include "profile.hpp"
#include "role.hpp"
#include "sso.hpp"

namespace dtrain::net {
namespace {

constexpr auto kRefreshBefore = std::chrono::minutes(15);
// Sources that give the same ones again are not asked more often, also where these have expired already by this
// machine's clock: it may be wrong, and a service that refuses them leads to refuse().
constexpr auto kAskAgainAfter = std::chrono::seconds(30);
constexpr int kMostRoles = 5;  // that lead to each other

CredentialsFound from_coordinator(const AwsSettings& settings) {
  if (!settings.delegated) return {};
  auto latest = settings.delegated->latest();
  if (!latest) return {{}, "it has none"};
  if (latest->expires && *latest->expires <= settings.clock()) return {};  // for resolve(), where there are no others
  return {std::move(latest), {}};
}

CredentialsFound from_environment(const AwsSettings& settings) {
  if (!settings.profile.empty()) return {{}, "a profile was named"};
  const auto key = variable_of(settings, "AWS_ACCESS_KEY_ID");
  const auto secret = variable_of(settings, "AWS_SECRET_ACCESS_KEY");
  if (!key && !secret) return {{}, "AWS_ACCESS_KEY_ID is not set"};
  if (!key || !secret) {
    throw UsageError("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set", "set both, or none");
  }
  AwsCredentials found{.access_key = *key,
                       .secret_key = *secret,
                       .session_token = variable_of(settings, "AWS_SESSION_TOKEN").value_or(""),
                       .source = "environment"};
  return {found, {}};
}

// Kinds of profiles that need a person or a browser: said, never passed over.
void refuse_other_kinds(const AwsProfile& profile) {
  struct Kind {
    const char *key, *what;
  };
  constexpr Kind kinds[] = {{"login_session", "signs in with `aws login`"},
                            {"mfa_serial", "asks for a code of a device"}};
  for (const Kind& kind : kinds) {
    if (profile.value(kind.key).empty()) continue;
    throw UsageError(
        fmt::format("AWS profile {}: it {}, which dtrain does not do", profile.name, kind.what),
        fmt::format("eval \"$(aws configure export-credentials --profile {} --format env)\"", profile.name));
  }
}

AwsProfile existing_profile(const AwsSettings& settings) {
  AwsProfile profile = read_profile(settings);
  if (!profile.chosen || profile.exists()) return profile;
  throw UsageError(fmt::format("AWS profile {}: neither in {} nor in {}", profile.name, profile.config_file,
                               profile.credentials_file),
                   "correct AWS_PROFILE, or run aws configure");
}

std::optional<AwsCredentials> keys_of(const AwsProfile& profile) {
  const std::string key = profile.value("aws_access_key_id"), secret = profile.value("aws_secret_access_key");
  if (key.empty() != secret.empty()) {
    throw UsageError(
        fmt::format("AWS profile {}: has only one of aws_access_key_id and aws_secret_access_key", profile.name),
        "write both into " + profile.credentials_file);
  }
  if (key.empty()) return std::nullopt;
  return AwsCredentials{.access_key = key,
                        .secret_key = secret,
                        .session_token = profile.value("aws_session_token"),
                        .source = "profile " + profile.name};
}

CredentialsFound from_profile(const AwsSettings& settings, int roles);

// Who asks for the profile's role.
AwsCredentials source_of(const AwsSettings& settings, const AwsProfile& profile, int roles) {
  const auto needed = [&](CredentialsFound found, const std::string& key) {
    if (found.credentials) return std::move(*found.credentials);
    throw NoCredentials(fmt::format("AWS profile {}: its {} has no credentials: {}", profile.name, key, found.why_not),
                        "correct it in " + profile.config_file);
  };
  AwsSettings asking = settings;
  asking.profile.clear();
  asking.region = aws_region(settings);  // one region for the whole chain: the other profiles may name none
  if (const std::string place = profile.value("credential_source"); !place.empty()) {
    if (place == "Environment") return needed(from_environment(asking), "credential_source");
    if (place == "EcsContainer") return needed(container_credentials(asking), "credential_source");
    if (place == "Ec2InstanceMetadata") return needed(instance_credentials(asking), "credential_source");
    throw UsageError(fmt::format("AWS profile {}: credential_source {} means nothing", profile.name, place),
                     "Environment, EcsContainer or Ec2InstanceMetadata");
  }
  const std::string name = profile.value("source_profile");
  if (name.empty() || roles == kMostRoles) {
    throw UsageError(fmt::format("AWS profile {}: its role has {}", profile.name,
                                 name.empty() ? "no source_profile" : "a source_profile that leads back to it"),
                     "correct it in " + profile.config_file);
  }
  if (name == profile.name) return needed({keys_of(profile), "it has no keys"}, "source_profile");
  asking.profile = name;
  return needed(from_profile(asking, roles + 1), "source_profile");
}

CredentialsFound from_profile(const AwsSettings& settings, int roles) {
  const AwsProfile profile = existing_profile(settings);
  refuse_other_kinds(profile);
  const std::string role = profile.value("role_arn");
  if (const std::string token = profile.value("web_identity_token_file"); !token.empty() && !role.empty()) {
    return {assume_role(settings, WebIdentity{token, role, profile.value("role_session_name")}), {}};
  }
  if (!role.empty()) return {assume_role(settings, profile, source_of(settings, profile, roles)), {}};
  if (signs_in_by_sso(profile)) return {sso_credentials(settings, profile), {}};
  if (auto keys = keys_of(profile)) return {std::move(keys), {}};
  if (const std::string command = profile.value("credential_process"); !command.empty()) {
    return {run_credential_process(command, "AWS profile " + profile.name), {}};
  }
  return {
      {},
      fmt::format("profile {} has no keys in {} or {}", profile.name, profile.credentials_file, profile.config_file)};
}

CredentialsFound from_chosen_profile(const AwsSettings& settings) { return from_profile(settings, 0); }

CredentialsFound from_web_identity(const AwsSettings& settings) {
  if (read_profile(settings).chosen) return {{}, "a profile was named"};
  const auto token = variable_of(settings, "AWS_WEB_IDENTITY_TOKEN_FILE"), role = variable_of(settings, "AWS_ROLE_ARN");
  if (!token || !role) return {{}, "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not set"};
  const std::string session = variable_of(settings, "AWS_ROLE_SESSION_NAME").value_or("");
  return {assume_role(settings, WebIdentity{*token, *role, session}), {}};
}

struct Source {
  const char* name;
  CredentialsFound (*find)(const AwsSettings&);
};
constexpr Source kSources[] = {{"coordinator", from_coordinator},    {"environment", from_environment},
                               {"web identity", from_web_identity},  {"profile", from_chosen_profile},
                               {"container", container_credentials}, {"instance", instance_credentials}};

AwsCredentials resolve(const AwsSettings& settings) try {
  std::vector<std::string> tried;
  for (const Source& source : kSources) {
    CredentialsFound found = source.find(settings);
    if (found.credentials) return std::move(*found.credentials);
    if (!found.why_not.empty()) tried.push_back(fmt::format("{} ({})", source.name, found.why_not));
  }
  throw NoCredentials(fmt::format("no AWS credentials: tried {}", join(tried, ", ")),
                      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run aws configure");
} catch (const NoCredentials&) {
  // Where this machine's clock is wrong, those of the coordinator may still live, which only the service can say.
  if (settings.delegated) {
    if (auto latest = settings.delegated->latest()) return std::move(*latest);
  }
  throw;
}

}  // namespace

void DelegatedCredentials::take(AwsCredentials credentials) {
  const MutexLock lock(mutex_);
  latest_ = std::move(credentials);
}

std::optional<AwsCredentials> DelegatedCredentials::latest() const {
  const MutexLock lock(mutex_);
  return latest_;
}

struct AwsIdentity::State {
  AwsSettings settings;
  Mutex mutex;
  std::optional<AwsCredentials> found DTRAIN_GUARDED_BY(mutex);
  WallTime asked DTRAIN_GUARDED_BY(mutex){};

  bool is_due() const DTRAIN_REQUIRES(mutex) {
    if (!found) return true;
    const WallTime now = settings.clock();
    if (!found->expires || now < *found->expires - kRefreshBefore) return false;
    const bool have_ended_since = asked < *found->expires && *found->expires <= now;
    return have_ended_since || now >= asked + kAskAgainAfter;
  }
  bool still_lives() const DTRAIN_REQUIRES(mutex) {
    return found && found->expires && *found->expires > settings.clock();
  }
};

AwsIdentity::AwsIdentity(AwsSettings settings) : state_(std::make_unique<State>()) {
  state_->settings = std::move(settings);
}
AwsIdentity::~AwsIdentity() = default;

AwsCredentials AwsIdentity::credentials() {
  const MutexLock lock(state_->mutex);
  if (!state_->is_due()) return *state_->found;
  state_->asked = state_->settings.clock();
  try {
    state_->found = resolve(state_->settings);
  } catch (const Error&) {
    // A source that is away for a while does not hurt before the end.
    if (state_->still_lives()) return *state_->found;
    state_->found.reset();
    throw;
  }
  return *state_->found;
}

void AwsIdentity::refuse(const AwsCredentials& expired) {
  const MutexLock lock(state_->mutex);
  if (state_->found && state_->found->session_token == expired.session_token &&
      state_->found->access_key == expired.access_key) {
    state_->found.reset();
  }
}

}  // namespace dtrain::net
