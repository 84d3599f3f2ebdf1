// Forgets what the library keeps for ever: no input may see what another has named.
#pragma once

void forget_names();    // domains, categories, registered strings
void forget_schemas();  // schemas and enumerations of payloads
