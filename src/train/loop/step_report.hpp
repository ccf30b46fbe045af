// What a step takes in and what it tells, in a generation as with parameter servers.
#pragma once

#include "generation.hpp"

namespace dtrain::train {

// Waits for the feed's next batch, which is that of the slice, and writes it into the ledger as the step at `place`.
// `shows`: the rank tells of its first batch.
FedBatch load_batch(const RunContext& context, BatchFeed& feed, const data::Slice& slice, const Cursor& place,
                    bool shows);

// The means of a step's metrics. The caller adds where the step stands in the run, its rate and its time.
StepReport step_report(const RunContext& context, const backend::StepMetrics& metrics);
// Of so many samples; kNotAskedFor where the options ask for none.
double top_k_accuracy_of(const RunContext& context, const backend::StepMetrics& metrics, double count);

}  // namespace dtrain::train
