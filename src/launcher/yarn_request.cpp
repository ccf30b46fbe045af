#include "yarn_request.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::launcher {
namespace {

constexpr int kMasterMemory = 512;  // MiB, of DistributedShell itself
constexpr std::size_t kLongestText = 65'535;
constexpr const char* kMaster = "org.apache.hadoop.yarn.applications.distributedshell.ApplicationMaster";
// The class path of a node, in Hadoop's notation.
constexpr const char* kClassPath =
    "{{CLASSPATH}}<CPS>./*<CPS>{{HADOOP_CONF_DIR}}<CPS>{{HADOOP_COMMON_HOME}}/share/hadoop/common/*<CPS>"
    "{{HADOOP_COMMON_HOME}}/share/hadoop/common/lib/*<CPS>{{HADOOP_HDFS_HOME}}/share/hadoop/hdfs/*<CPS>"
    "{{HADOOP_HDFS_HOME}}/share/hadoop/hdfs/lib/*<CPS>{{HADOOP_YARN_HOME}}/share/hadoop/yarn/*<CPS>"
    "{{HADOOP_YARN_HOME}}/share/hadoop/yarn/lib/*";

Json entries(const char* key, Json value) {
  return Json::object({{"entry", Json::array({Json::object({{"key", key}, {"value", std::move(value)}})})}});
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string master_command(const YarnLauncherOptions& options) {
  return fmt::format(
      "{{{{JAVA_HOME}}}}/bin/java -Xmx256m {} --container_memory {} --container_vcores {} --num_containers 1 "
      "--priority 0 1><LOG_DIR>/AppMaster.stdout 2><LOG_DIR>/AppMaster.stderr",
      kMaster, options.memory, options.cores);
}

}  // namespace

Json yarn_submission(const std::string& application, const YarnLauncherOptions& options, const CommandFile& command) {
  Json resource = Json::object({{"resource", "file://" + command.path.string()},
                                {"type", "FILE"},
                                {"visibility", "APPLICATION"},
                                {"size", static_cast<std::int64_t>(command.size)},
                                {"timestamp", command.modified}});
  Json master = Json::object({{"local-resources", entries("shellCommands", std::move(resource))},
                              {"commands", Json::object({{"command", master_command(options)}})},
                              {"environment", entries("CLASSPATH", kClassPath)}});
  Json body = Json::object({{"application-id", application},
                            {"application-name", "dtrain-agent"},
                            {"application-type", "DTRAIN"},
                            {"am-container-spec", std::move(master)},
                            {"unmanaged-AM", false},
                            {"max-app-attempts", 1},
                            {"keep-containers-across-application-attempts", false},
                            {"resource", Json::object({{"memory", kMasterMemory}, {"vCores", 1}})}});
  if (!options.queue.empty()) body["queue"] = options.queue;
  return body;
}

std::string command_file_content(const std::vector<std::string>& command) {
  std::string text = "exec";
  for (const std::string& word : command) {
    // The node puts the line between double quotes, and expands <LOG_DIR>, {{NAME}} and the like in it.
    if (word.find_first_of("\"$`\\<{\n") != word.npos || word.find('\0') != word.npos) {
      throw UsageError(fmt::format("YARN cannot run a command with '{}' in it", word),
                       "use a --job-dir and a dtrain whose paths have none of \" $ ` \\ < {{ and no line end");
    }
    text.append(" ").append(quoted(word));
  }
  if (text.size() > kLongestText) throw UsageError("the agent's command line is longer than YARN's may be");
  return {std::string{static_cast<char>(text.size() >> 8), static_cast<char>(text.size() & 0xff)} + text};
}

std::string yarn_end(const Json& answer) {
  const Json& app = answer.at("app");
  const std::string& state = app.at("state").as_string();
  if (state != "FINISHED" && state != "FAILED" && state != "KILLED") return "";
  const Json* diagnostics = app.find("diagnostics");
  const std::string why = diagnostics && diagnostics->is_string() ? diagnostics->as_string() : "";
  return fmt::format("its YARN application {} is {}{}{}", app.at("id").as_string(), state, why.empty() ? "" : ": ",
                     why);
}

}  // namespace dtrain::launcher
