#include "job_work.hpp"

#include "program_work.hpp"
#include "train_work.hpp"

namespace dtrain::job {

std::unique_ptr<JobWork> work_from_document(const Json& document, const JobFolder& folder, Reporter& reporter) {
  if (holds_program(document)) return std::make_unique<ProgramWork>(document, reporter);
  return std::make_unique<TrainWork>(run_from_json(document), folder, reporter);
}

}  // namespace dtrain::job
