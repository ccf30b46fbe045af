#include "job_work.hpp"

#include "program_work.hpp"
#include "train_work.hpp"

namespace dtrain::job {

std::unique_ptr<JobWork> work_from_document(const Json& document, const JobFolder& folder, Reporter& reporter) {
  const config::RunSpec spec = config::run_spec_from_json(document);
  enter_folder(spec);
  if (const auto* program = std::get_if<config::ProgramSpec>(&spec.work)) {
    return std::make_unique<ProgramWork>(*program, reporter);
  }
  return std::make_unique<TrainWork>(run_of(std::get<config::TrainSpec>(spec.work)), folder, reporter);
}

}  // namespace dtrain::job
