// Where a person's AWS credentials come from, as a test says it: an environment and a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/net/aws.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::net {

class AwsSources : public testing::Test {
 protected:
  AwsSources() {
    variables = {{"AWS_CONFIG_FILE", (folder / "config").string()},
                 {"AWS_SHARED_CREDENTIALS_FILE", (folder / "credentials").string()},
                 {"AWS_EC2_METADATA_DISABLED", "true"}};
    settings.environment = [this](const std::string& variable) -> std::optional<std::string> {
      const auto found = variables.find(variable);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
  }

  Path write(const char* name, const std::string& text) {
    std::filesystem::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
    return folder / name;
  }
  AwsCredentials credentials() { return AwsIdentity(settings).credentials(); }
  // "WHAT | HINT" of the refusal.
  std::string error() {
    try {
      credentials();
    } catch (const Error& problem) {
      return std::string(problem.what()) + " | " + problem.hint();
    }
    return "nothing was thrown";
  }

  TemporaryFolder folder;
  std::map<std::string, std::string> variables;
  AwsSettings settings;
};

inline bool holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace dtrain::net
