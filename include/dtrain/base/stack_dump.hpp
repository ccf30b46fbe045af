// The stacks of all threads of this process, written to stderr when a signal asks for it.
#pragma once

namespace dtrain {

// The signal that asks: a real-time one, because libraries use the others. A process without the handler dies of it.
int stack_dump_signal();
// Installs the handler. Call once, early. The program goes on after a dump.
void dump_stacks_on_signal();

}  // namespace dtrain
