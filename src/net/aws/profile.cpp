#include "profile.hpp"

#include <filesystem>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

std::string file_of(const AwsSettings& settings, const std::string& variable, const std::string& standard) {
  if (const auto path = variable_of(settings, variable)) return *path;
  return settings.environment("HOME").value_or("") + "/.aws/" + standard;
}

Ini read_ini(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  return parse_ini(read_file(path), path);
}

const std::map<std::string, std::string>* find(const Ini& ini, const std::string& section) {
  const auto found = ini.find(section);
  return found == ini.end() ? nullptr : &found->second;
}

std::string value_in(const std::map<std::string, std::string>* section, const std::string& key) {
  if (!section) return {};
  const auto found = section->find(key);
  return found == section->end() ? std::string() : found->second;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) { return environment(name); };
}

std::optional<std::string> variable_of(const AwsSettings& settings, const std::string& name) {
  auto value = settings.environment(name);
  if (value && value->empty()) value.reset();
  return value;
}

const std::map<std::string, std::string>* AwsProfile::config_section() const {
  if (const auto* section = find(config, "profile " + name)) return section;
  return name == "default" ? find(config, "default") : nullptr;
}

bool AwsProfile::exists() const { return config_section() || find(credentials, name); }

std::string AwsProfile::value(const std::string& key) const {
  const std::string own = value_in(find(credentials, name), key);
  return own.empty() ? value_in(config_section(), key) : own;
}

std::string AwsProfile::service_endpoint(std::string_view variable) const {
  const std::string services = value("services");
  if (services.empty()) return {};
  return value_in(find(config, "services " + services), lower_case(variable) + ".endpoint_url");
}

std::string AwsProfile::session_value(const std::string& session, const std::string& key) const {
  const std::string own = value(key);
  return own.empty() ? value_in(find(config, "sso-session " + session), key) : own;
}

std::string aws_ca_bundle(const AwsSettings& settings) {
  return variable_of(settings, "AWS_CA_BUNDLE") ? std::string() : read_profile(settings).value("ca_bundle");
}

AwsProfile read_profile(const AwsSettings& settings) {
  AwsProfile profile;
  const auto named = settings.profile.empty() ? variable_of(settings, "AWS_PROFILE") : settings.profile;
  profile.chosen = named.has_value();
  if (named) profile.name = *named;
  profile.config_file = file_of(settings, "AWS_CONFIG_FILE", "config");
  profile.credentials_file = file_of(settings, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  profile.config = read_ini(profile.config_file);
  profile.credentials = read_ini(profile.credentials_file);
  return profile;
}

}  // namespace dtrain::net
