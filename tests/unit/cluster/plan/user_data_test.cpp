#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <regex>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/cluster/node_order.hpp>
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

TEST(UserData, MountsLustreByItsName) {
  NodeBoot boot = example();
  boot.shared = {.kind = SharedFolder::Kind::lustre,
                 .file_system = "fs-0123456789abcdef0",
                 .mount_name = "a1b2c3d4",
                 .folder = "/no/such folder"};
  const auto mounts = [&] {
    std::string script = user_data(boot);
    script.replace(script.rfind("\nmain\n"), 6,
                   "\nmkdir() { :; }; chown() { :; }; mountpoint() { return 1; }; get_lustre() { :; }\n"
                   "mount() { echo \"mount $*\"; }\nmake_shared\n");
    return said_by_shell(script);
  };
  EXPECT_EQ(mounts(),
            "mount -t lustre -o relatime,flock fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com@tcp:/a1b2c3d4 "
            "/no/such folder\n");
  boot.region = "cn-north-1";
  EXPECT_NE(mounts().find("fsx.cn-north-1.amazonaws.com.cn@tcp"), std::string::npos);
  boot.region = "eusc-de-east-1";
  EXPECT_NE(mounts().find("fsx.eusc-de-east-1.amazonaws.eu@tcp"), std::string::npos);
}

TEST(UserData, MountsEfsByTheNameOfItsPartition) {
  NodeBoot boot = example();
  const auto mounts = [&] {
    std::string script = user_data(boot);
    script.replace(script.rfind("\nmain\n"), 6, "\nmount() { echo \"$5\"; }\nmount_efs\n");
    return said_by_shell(script);
  };
  EXPECT_EQ(mounts(), "fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/\n");
  boot.region = "cn-northwest-1";
  EXPECT_EQ(mounts(), "fs-0123456789abcdef0.efs.cn-northwest-1.amazonaws.com.cn:/\n");
  boot.region = "eusc-de-east-1";
  EXPECT_EQ(mounts(), "fs-0123456789abcdef0.efs.eusc-de-east-1.amazonaws.eu:/\n");
}

TEST(UserData, MountsEfsByAnAddressWhereItsNameStaysUnknown) {
  std::string script = user_data(example());
  script.replace(script.rfind("\nmain\n"), 6,
                 "\nnow=0; date() { echo \"$now\"; }; sleep() { now=$((now + 60)); }\n"
                 "mount() { echo \"$5\"; case $5 in 172*) ;; *) return 1 ;; esac; }\nmount_efs\n");
  const std::string name = "fs-0123456789abcdef0.efs.eu-west-1.amazonaws.com:/\n";
  EXPECT_EQ(said_by_shell(script), name + name + name + "172.31.7.7:/\n") << "a new mount target takes two minutes";
}

TEST(UserData, WritesDownWhenATimeLimitEndsTheMachine) {
  const Path folder = std::filesystem::temp_directory_path() / ("user_data_ends_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  NodeBoot boot = example();
  boot.time_to_live = std::chrono::hours(1000000);
  std::string script = user_data(boot);
  script.replace(script.find("home=/opt/dtrain"), 16, "home=" + folder.string());
  script.replace(script.rfind("\nmain\n"), 6,
                 "\nsleep() { :; }; say() { :; }; power_off() { :; }\nlive_no_longer\n"
                 "read -r up _ </proc/uptime; echo $(($(cat $home/ends) - ${up%%.*} - time_to_live))\n");
  const std::string said = said_by_shell(script);
  EXPECT_TRUE(said == "0\n" || said == "-1\n") << said << "seconds after the start of the machine";
  std::filesystem::remove_all(folder);
}

TEST(UserData, SaysThatAnImageHasNoClientOfLustre) {
  NodeBoot boot = example();
  boot.shared = {.kind = SharedFolder::Kind::lustre, .file_system = "fs-1", .mount_name = "a", .folder = "/d"};
  std::string script = user_data(boot);
  script.replace(script.rfind("\nmain\n"), 6, "\nPATH=/nowhere\nget_lustre\n");
  EXPECT_NE(said_by_shell(script).find("no client of Lustre in this image"), std::string::npos);
}

// What the script would keep running on a machine of this kind, as it starts there.
std::string kept_by(const NodeBoot& boot) {
  std::string script = user_data(boot);
  script.replace(script.rfind("\nmain\n"), 6, "\nkeep_running() { printf '%s ' \"$1\"; }\nstart_agent || true\n");
  return said_by_shell(script);
}

TEST(UserData, TheHeadKeepsTheClusterWhereThatIsWanted) {
  NodeBoot boot = example();
  EXPECT_EQ(kept_by(boot), "node ");
  boot.heal = true;
  EXPECT_EQ(kept_by(boot), "node ");
  boot.role = NodeBoot::Role::head;
  boot.head_address = "";
  EXPECT_EQ(kept_by(boot), "head jobs heal node ");
  boot.heal = false;
  EXPECT_EQ(kept_by(boot), "head jobs node ");
}

TEST(UserData, WorkersGuardTheHeadWhereThatIsWanted) {
  NodeBoot boot = example();
  boot.replace_head_after = std::chrono::minutes(3);
  EXPECT_EQ(kept_by(boot), "node guard ");
  boot.role = NodeBoot::Role::head;
  EXPECT_EQ(kept_by(boot), "head jobs node ");
}

// The settings of the node's processes as they read them from the file that the script writes.
NodeOrder order_in(const NodeBoot& boot) {
  const Path file = std::filesystem::temp_directory_path() / ("node_order_test_" + std::to_string(::getpid()));
  std::string script = user_data(boot);
  script.replace(script.rfind("\nmain\n"), 6, "\nprintf '%s' \"$node_json\"\n");
  write_file_atomic(file, said_by_shell(script));
  NodeOrder order = read_node_order(file);
  std::filesystem::remove(file);
  return order;
}

TEST(UserData, AMachineThatDtrainDidNotStartKnowsIt) {
  NodeBoot boot = example();
  EXPECT_FALSE(order_in(boot).adopted);
  boot.adopted = true;
  EXPECT_TRUE(order_in(boot).adopted);
  EXPECT_EQ(order_in(boot).cluster, "demo");
}

// Whether a node on which such a process runs counts as busy.
std::string busyness_with(const std::string& process) {
  std::string script = user_data(example());
  script.replace(script.rfind("\nmain\n"), 6,
                 "\nwho() { :; }; ps() { echo '" + process + "'; }\nbusy && echo busy || echo idle\n");
  return said_by_shell(script);
}

TEST(UserData, WorkOfDtrainKeepsANodeOn) {
  for (const char* process :
       {"dtrain train", "/opt/dtrain/bundle/dtrain agent --apart", "/tmp/dtrain --quiet train --network resnet",
        "dtrain --config a.toml -v launch -H a:1", "sh ./dtrain bench train", "dtrain --color never predict a.jpg",
        "dtrain export a", "dtrain import b"}) {
    EXPECT_EQ(busyness_with(process), "busy\n") << process;
  }
  for (const char* process :
       {"/opt/dtrain/bundle/dtrain agent --node /opt/dtrain/node.json", "dtrain cluster status train", "mydtrain train",
        "dtrain --quiet jobs list", "/bin/sh /var/lib/cloud/scripts/per-boot/dtrain", "less dtrain trainer"}) {
    EXPECT_EQ(busyness_with(process), "idle\n") << process;
  }
}

TEST(UserData, AServerThatStallsIsGivenUp) {
  std::string script = user_data(example());
  script.replace(script.rfind("\nmain\n"), 6,
                 "\ncurl() { echo \"$*\"; }\nhttp GET http://a/b c\nhttp POST http://a/b c d\n");
  const std::string said = said_by_shell(script);
  const std::string limits = "--connect-timeout 5 --speed-limit 1000 --speed-time 30 -X ";
  EXPECT_NE(said.find(limits + "GET"), std::string::npos) << said;
  EXPECT_NE(said.find(limits + "POST"), std::string::npos) << said;
}

// What the script does with the bundle on a machine of this kind, in folders of the test.
std::string bundle_by(NodeBoot boot, const Path& folder, const std::string& before) {
  boot.shared = {.kind = SharedFolder::Kind::path, .folder = (folder / "shared").string()};
  boot.bundle_sha256 = said_by_shell("tar -cf " + (folder / "made.tar").string() + " -C " + folder.string() +
                                     " program; sha256sum <" + (folder / "made.tar").string())
                           .substr(0, 64);
  std::string script = user_data(boot);
  script.replace(script.find("home=/opt/dtrain"), 16, "home=" + (folder / "home").string());
  script.replace(script.rfind("\nmain\n"), 6,
                 "\nboot_deadline=0; mkdir -p $home/incoming $folder\n" + before +
                     "\nget_bundle >/dev/null 2>&1 && echo has it || echo has none\n");
  return said_by_shell(script);
}

TEST(UserData, AHeadFindsTheBundleOfTheHeadBeforeInTheSharedFolder) {
  const Path folder = std::filesystem::temp_directory_path() / ("user_data_bundle_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  write_file_atomic(folder / "program", "dtrain");
  NodeBoot boot = example();
  boot.role = NodeBoot::Role::head;
  const std::string again = "rm -rf $home/incoming/* $home/bundle";
  EXPECT_EQ(bundle_by(boot, folder, again), "has none\n");
  EXPECT_EQ(bundle_by(boot, folder, "cp ${home%/*}/made.tar $home/incoming/$sha256.tar"), "has it\n");
  EXPECT_EQ(bundle_by(boot, folder, again), "has it\n");
  boot.role = NodeBoot::Role::worker;
  EXPECT_EQ(bundle_by(boot, folder, again), "has it\n");
  EXPECT_EQ(read_file(folder / "home/bundle/program"), "dtrain");
  boot.role = NodeBoot::Role::head;  // one that is not the right one counts for nothing
  EXPECT_EQ(bundle_by(boot, folder, again + "; echo another >$(ls $folder/.dtrain/demo/*.tar)"), "has none\n");
  std::filesystem::remove_all(folder);
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
