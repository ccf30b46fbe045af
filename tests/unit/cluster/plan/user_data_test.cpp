#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <regex>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/cluster/user_data.hpp>

namespace dtrain::cluster {
namespace {

NodeBoot example() {
  NodeBoot boot{.cluster = "demo",
                .head_address = "172.31.5.9",
                .admission = std::string(64, 'c'),
                .bundle_sha256 = std::string(64, 'a'),
                .region = "eu-west-1",
                .shared = {.kind = SharedFolder::Kind::efs,
                           .file_system = "fs-0123456789abcdef0",
                           .mount_target = "172.31.7.7",
                           .folder = "/myEFSvolume"},
                .prepare = "python3 prepare-data.py --name 'a b'"};
  boot.spec = Json::object({{"workers", 2}, {"types", Json::array({"c5.large", "c5a.large"})}});
  return boot;
}

// What a shell writes to its standard output.
std::string said_by_shell(const std::string& script) {
  const Path file = std::filesystem::temp_directory_path() / ("user_data_test_" + std::to_string(::getpid()));
  write_file_atomic(file, script);
  std::string said;
  std::array<char, 256> piece{};
  FILE* pipe = ::popen(("/bin/sh " + file.string() + " 2>&1").c_str(), "r");
  while (std::fgets(piece.data(), piece.size(), pipe)) said += piece.data();
  if (::pclose(pipe) != 0) said += "(failed)";
  std::filesystem::remove(file);
  return said;
}

// Nodes of one cluster are compared by it, and add must be able to tell what changed. Written anew where the
// environment says DTRAIN_UPDATE_GOLDEN=1.
TEST(UserData, IsTheSameForever) {
  const Path golden = Path(DTRAIN_TESTS_DIR) / "unit/cluster/golden/user_data.sh";
  if (::getenv("DTRAIN_UPDATE_GOLDEN")) write_file_atomic(golden, user_data(example()));
  EXPECT_EQ(user_data(example()), read_file(golden));
}

TEST(UserData, IsWhatAnyShellReads) {
  const std::string script = user_data(example());
  EXPECT_EQ(said_by_shell("sh -n <<'SCRIPT'\n" + script + "SCRIPT\n"), "");
}

TEST(UserData, GivesBackTheSpecification) {
  EXPECT_EQ(spec_in(user_data(example())), example().spec);
  EXPECT_EQ(spec_in("#!/bin/sh\necho something else\n"), std::nullopt);
}

TEST(UserData, HandsOverWhatAPersonWroteByteForByte) {
  NodeBoot boot = example();
  boot.prepare = "echo \"$HOME\" 'x' `date` \\ \n $(reboot)";
  std::string script = user_data(boot);
  script.replace(script.rfind("\nmain\n"), 6, "\nprintf '[%s]' \"$prepare\"\n");
  EXPECT_EQ(said_by_shell(script), "[" + boot.prepare + "]");
}

// The failure report travels in clear, so its proof is not the secret.
TEST(UserData, HoldsNoSecretButThatOfAdmission) {
  const std::string script = user_data(example());
  const std::size_t order = script.find("node_json=");
  EXPECT_EQ(script.find(example().admission), script.find(example().admission, order));
  const std::regex secret(
      "AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|aws_secret|PRIVATE KEY|(^|[^0-9a-f])[0-9a-f]{40}([^0-9a-f]|$)");
  EXPECT_FALSE(std::regex_search(script, secret));
  EXPECT_EQ(std::string::npos, script.find("AWS_SECRET"));
}

TEST(UserData, IsRefusedWhereItIsTooLong) {
  NodeBoot boot = example();
  boot.prepare = std::string(kMostUserData, 'x');
  EXPECT_THROW(user_data(boot), UsageError);
  boot = example();
  boot.bundle_sha256 = "latest";
  EXPECT_THROW(user_data(boot), UsageError);
  boot = example();
  boot.admission = "";
  EXPECT_THROW(user_data(boot), UsageError);
}

}  // namespace
}  // namespace dtrain::cluster
