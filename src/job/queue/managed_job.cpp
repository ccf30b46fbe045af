#include "managed_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_words.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::job {
namespace {

constexpr std::string_view kSpecSchema = "dtrain.managed-job/";
constexpr std::string_view kRecordSchema = "dtrain.managed-job-state/";
constexpr int kManagedSchema = 1;

// A name that ends in _ or = stands for all that begin so.
constexpr std::array<std::string_view, 20> kKept = {
    "DTRAIN_",     "OMP_",         "MKL_",          "OPENBLAS_", "CUDA_",      "NCCL_",      "NVIDIA_",
    "TORCH_",      "TF_",          "MXNET_",        "HF_HOME=",  "PATH=",      "HOME=",      "LD_LIBRARY_PATH=",
    "PYTHONPATH=", "VIRTUAL_ENV=", "CONDA_PREFIX=", "LANG=",     "EFS_MOUNT=", "AWS_REGION="};

Json parsed(std::string_view text, std::string_view source, std::string_view schema) {
  Json json = Json::parse(text, source);
  const std::string& said = json.at("schema").as_string();
  const auto number = said.starts_with(schema) ? parse_integer(said.substr(schema.size())) : std::nullopt;
  if (!number) throw DataError(fmt::format("{}: its schema '{}' is not {}N", source, said, schema));
  if (*number > kManagedSchema) {
    throw DataError(fmt::format("{}: its schema {} is of a newer dtrain", source, said),
                    "run the dtrain that wrote it, or a newer one");
  }
  return json;
}

int small(const Json& value) { return static_cast<int>(value.as_integer()); }

}  // namespace

Json to_json(const ManagedSpec& spec) {
  return Json::object({{"schema", fmt::format("{}{}", kSpecSchema, kManagedSchema)},
                       {"command", words_to_json(spec.words)},
                       {"environment", words_to_json(spec.environment)},
                       {"folder", words_to_json({spec.folder.string()})},
                       {"job_dir", words_to_json({spec.job_folder.string()})},
                       {"model_prefix", words_to_json({spec.prefix.string()})},
                       {"cluster", spec.cluster},
                       {"priority", spec.priority},
                       {"hosts", spec.hosts},
                       {"resumes", spec.resumes},
                       {"continues", spec.continues},
                       {"retries", spec.retries},
                       {"submitted", spec.submitted}});
}

ManagedSpec managed_spec_from(std::string_view text, std::string_view source) {
  const Json json = parsed(text, source, kSpecSchema);
  ManagedSpec spec{.words = words_from_json(json.at("command")),
                   .environment = words_from_json(json.at("environment")),
                   .cluster = json.at("cluster").as_string(),
                   .priority = small(json.at("priority")),
                   .hosts = small(json.at("hosts")),
                   .resumes = json.at("resumes").as_bool(),
                   .submitted = json.at("submitted").as_integer()};
  const auto path = [&](const char* key) {
    const std::vector<std::string> one = words_from_json(json.at(key));
    return one.empty() ? Path() : Path(one.front());
  };
  // Earlier versions write none of these.
  if (const Json* retries = json.find("retries")) spec.retries = small(*retries);
  if (const Json* continues = json.find("continues")) spec.continues = continues->as_bool();
  if (json.find("model_prefix")) spec.prefix = path("model_prefix");
  spec.folder = path("folder");
  spec.job_folder = path("job_dir");
  if (spec.words.empty()) throw DataError(fmt::format("{}: it has no command", source));
  return spec;
}

Json to_json(const JobRecord& record) {
  return Json::object({{"schema", fmt::format("{}{}", kRecordSchema, kManagedSchema)},
                       {"state", enum_name(kJobStateNames, record.state)},
                       {"why", record.why},
                       {"exit_code", record.exit_code},
                       {"attempts", record.attempts},
                       {"failures", record.failures},
                       {"refusals", record.refusals},
                       {"losses", record.losses},
                       {"progress", record.progress},
                       {"not_before", record.not_before},
                       {"machines_until", record.machines_until},
                       {"machines", record.machines},
                       {"begun", record.begun},
                       {"ended", record.ended},
                       {"term", record.term},
                       {"first_term", record.first_term},
                       {"log_begin", record.log_begin}});
}

JobRecord job_record_from(std::string_view text, std::string_view source) {
  const Json json = parsed(text, source, kRecordSchema);
  const auto state = enum_value(kJobStateNames, json.at("state").as_string());
  if (!state) throw DataError(fmt::format("{}: '{}' is no state", source, json.at("state").as_string()));
  const Json* first_term = json.find("first_term");  // earlier versions write none
  return {.state = *state,
          .why = json.at("why").as_string(),
          .exit_code = small(json.at("exit_code")),
          .attempts = small(json.at("attempts")),
          .failures = small(json.at("failures")),
          .refusals = small(json.at("refusals")),
          .losses = small(json.at("losses")),
          .progress = json.at("progress").as_string(),
          .not_before = json.at("not_before").as_integer(),
          .machines_until = json.at("machines_until").as_integer(),
          .machines = small(json.at("machines")),
          .begun = json.at("begun").as_integer(),
          .ended = json.at("ended").as_integer(),
          .term = static_cast<std::uint64_t>(json.at("term").as_integer()),
          .first_term = first_term ? static_cast<std::uint64_t>(first_term->as_integer()) : 0,
          .log_begin = static_cast<std::uint64_t>(json.at("log_begin").as_integer())};
}

std::vector<std::string> kept_environment(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const std::string& variable : environment) {
    if (std::ranges::any_of(kKept, [&](std::string_view lead) { return variable.starts_with(lead); }))
      kept.push_back(variable);
  }
  return kept;
}

std::string command_text(const ManagedSpec& spec) {
  std::string text;
  for (const std::string& word : spec.words) text.append(text.empty() ? "" : " ").append(net::shell_quoted(word));
  return text;
}

}  // namespace dtrain::job
