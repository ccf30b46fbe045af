// What `dtrain doctor` says: facts of one machine judged by rules, without looking at anything itself.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>

#include "doctor_facts.hpp"

namespace dtrain::doctor {

enum class Level {
  fine,     // as it should be
  note,     // good to know
  warning,  // works, but slowly or not for long
  problem,  // will fail
};
constexpr EnumName<Level> kLevelNames[] = {
    {Level::fine, "fine"}, {Level::note, "note"}, {Level::warning, "warning"}, {Level::problem, "problem"}};

struct Finding {
  Level level = Level::fine;
  std::string about;  // one word: "memory", "ssh"
  std::string what;   // with the numbers that were found
  std::string why;    // why it matters; empty when fine
  std::string fix;    // the command, or the next thing to do; may be empty
  friend bool operator==(const Finding&, const Finding&) = default;
};

Json to_json(const Finding& finding);
Finding finding_from_json(const Json& json);  // throws DataError

// In the order in which a person should read them.
std::vector<Finding> judge(const MachineFacts& facts);
// For a user who asks for AWS alone, so that having no credentials is a problem.
std::vector<Finding> judge_identity(const MachineFacts& facts);

// The parts of it.
std::vector<Finding> judge_compute(const MachineFacts& facts);
std::vector<Finding> judge_disks(const MachineFacts& facts);
std::vector<Finding> judge_ssh(const MachineFacts& facts);
std::vector<Finding> judge_gpus(const NvidiaFacts& facts);
std::vector<Finding> judge_cluster_variables(const ClusterVariables& facts, int gpus);
std::vector<Finding> judge_aws(const AwsFacts& facts, Level without_credentials = Level::note);
std::vector<Finding> judge_bundle(const AwsFacts& facts);  // of this program, as `cluster up` would copy it

}  // namespace dtrain::doctor
