// Prints the user data of a node that standard input describes: {"cluster", "role", "head", "admission", "sha256",
// "login", "region", "shared", "file_system", "mount_target", "folder", "prepare", "prepare_seconds", "boot_seconds",
// "autostop", "keep_failed"}.
#include <iostream>
#include <iterator>

#include <dtrain/cluster/user_data.hpp>

using dtrain::Json;
using namespace dtrain::cluster;

static SharedFolder::Kind kind_of(const std::string& word) {
  if (word == "efs") return SharedFolder::Kind::efs;
  return word == "path" ? SharedFolder::Kind::path : SharedFolder::Kind::none;
}

int main() {
  const Json told = Json::parse(std::string{std::istreambuf_iterator<char>(std::cin), {}}, "standard input");
  const auto word = [&](const char* name) { return told.find(name) ? told.at(name).as_string() : std::string(); };
  const auto seconds = [&](const char* name, std::chrono::seconds otherwise) {
    return told.find(name) ? std::chrono::seconds(told.at(name).as_integer()) : otherwise;
  };
  NodeBoot boot;
  boot.cluster = word("cluster");
  boot.role = word("role") == "head" ? NodeBoot::Role::head : NodeBoot::Role::worker;
  boot.head_address = word("head");
  boot.admission = word("admission");
  boot.bundle_sha256 = word("sha256");
  boot.login = word("login");
  boot.region = word("region");
  boot.shared = {kind_of(word("shared")), word("file_system"), word("mount_target"), word("folder")};
  boot.prepare = word("prepare");
  boot.prepare_deadline = seconds("prepare_seconds", boot.prepare_deadline);
  boot.boot_deadline = seconds("boot_seconds", boot.boot_deadline);
  boot.autostop = seconds("autostop", boot.autostop);
  boot.keep_failed = told.find("keep_failed") && told.at("keep_failed").as_bool();
  std::cout << user_data(boot);
}
