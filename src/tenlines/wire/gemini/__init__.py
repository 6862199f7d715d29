"""Google Gemini's `generateContent`, as the Gemini API and Vertex AI speak it."""
